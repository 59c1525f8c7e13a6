package awsprovider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// readSecrets reads what the valueFroms of some secrets name.
func readSecrets(ctx context.Context, config aws.Config, list []taskdef.Secret) (map[string]string, error) {
	found := map[string]string{}
	parameters := map[string][]string{} // by region
	for _, s := range list {
		from := s.ValueFrom
		if _, done := found[from]; done {
			continue
		}
		found[from] = ""
		if secretOf(from).arn == "" {
			region := arnRegion(from, config.Region)
			parameters[region] = append(parameters[region], from)
		}
	}
	for region, names := range parameters {
		for batch := range slices.Chunk(names, maxParameters) {
			if err := readParameters(ctx, config, region, batch, found); err != nil {
				return nil, err
			}
		}
	}
	whole := map[secret]string{} // one secret is often named by several keys
	for from := range found {
		s := secretOf(from)
		if s.arn == "" {
			continue
		}
		key := s.key
		s.key = ""
		text, read := whole[s]
		if !read {
			var err error
			if text, err = readSecret(ctx, config, s); err != nil {
				return nil, err
			}
			whole[s] = text
		}
		value, err := member(text, key)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "unable to retrieve secret from asm: %s", from)
		}
		found[from] = value
	}
	return found, nil
}

// maxParameters is how many parameters one GetParameters takes.
const maxParameters = 10

// readParameters reads parameters of one region, by name or ARN, decrypted.
func readParameters(ctx context.Context, config aws.Config, region string, names []string, found map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client := ssm.NewFromConfig(config, func(o *ssm.Options) { o.Region = region })
	out, err := client.GetParameters(ctx, &ssm.GetParametersInput{Names: names, WithDecryption: aws.Bool(true)})
	const what = "unable to retrieve secrets from ssm"
	if err != nil {
		return classify(err, what+": "+strings.Join(names, ", "))
	}
	var missing []string
	for _, name := range names {
		i := slices.IndexFunc(out.Parameters, func(p types.Parameter) bool { return aws.ToString(p.Name) == name || aws.ToString(p.ARN) == name })
		if i < 0 {
			missing = append(missing, name)
			continue
		}
		found[name] = aws.ToString(out.Parameters[i].Value)
	}
	if len(missing) > 0 {
		return fault.New(fault.Invalid, "%s: invalid parameters: %s: none is there of that name, version or label", what, strings.Join(missing, ", "))
	}
	return nil
}

// secret is one of Secrets Manager, as valueFrom names it: an ARN, or an ARN and three
// parts, each of which may be empty: JSON key, version stage, version id.
type secret struct{ arn, key, stage, version string }

// secretOf reads a valueFrom; of what names no secret nothing.
func secretOf(from string) secret {
	parts := strings.Split(from, ":")
	if len(parts) < 7 || parts[2] != "secretsmanager" {
		return secret{}
	}
	s := secret{arn: strings.Join(parts[:7], ":")}
	if len(parts) == 10 {
		s.key, s.stage, s.version = parts[7], parts[8], parts[9]
	}
	return s
}

func readSecret(ctx context.Context, config aws.Config, s secret) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client := secretsmanager.NewFromConfig(config, func(o *secretsmanager.Options) { o.Region = arnRegion(s.arn, config.Region) })
	in := &secretsmanager.GetSecretValueInput{SecretId: &s.arn}
	if s.stage != "" {
		in.VersionStage = &s.stage
	}
	if s.version != "" {
		in.VersionId = &s.version
	}
	out, err := client.GetSecretValue(ctx, in)
	what := "unable to retrieve secret from asm: " + s.arn
	if err != nil {
		return "", classify(err, what)
	}
	if out.SecretString == nil {
		return "", fault.New(fault.Invalid, "%s: it is binary; a secret that is a text is wanted (SecretString)", what)
	}
	return *out.SecretString, nil
}

// member is the value of a key in a secret that is a JSON object; without a key the
// whole. A text is given without its quotes, anything else as it is written there.
// Errors say nothing of what the secret holds.
func member(text, key string) (string, error) {
	if key == "" {
		return text, nil
	}
	var all map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &all) != nil {
		return "", fmt.Errorf("it is not a JSON object, so it has no json key %s", key)
	}
	raw, ok := all[key]
	if !ok {
		return "", fmt.Errorf("retrieved secret from Secrets Manager did not contain json key %s", key)
	}
	if bytes.Equal(raw, []byte("null")) {
		return "", fmt.Errorf("json key %s has no value (null)", key)
	}
	var value string
	if json.Unmarshal(raw, &value) == nil {
		return value, nil
	}
	return string(raw), nil
}

// arnRegion is the region that an ARN names, or the own.
func arnRegion(arn, own string) string {
	if parts := strings.SplitN(arn, ":", 6); len(parts) == 6 && parts[0] == "arn" && parts[3] != "" {
		return parts[3]
	}
	return own
}
