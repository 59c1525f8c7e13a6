//go:build emulator

package awsprovider

import (
	"context"
	"crypto/rand"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/test/emulator"
)

func TestMain(m *testing.M) { emulator.Main(m) }

// allowed are sessions of a role that may do anything.
type allowed struct{ aws.CredentialsProvider }

func (a allowed) Credentials(ctx context.Context, _, _ string) (aws.Credentials, error) {
	return a.Retrieve(ctx)
}

func (allowed) Drop(string) {}

func TestEmulator_ReadsFromTheServicesAsTheyAnswer(t *testing.T) {
	config, mark := emulator.Shared(t).AWSConfig(), strings.ToLower(rand.Text()[:8]) // names of its own, for whoever else shares it
	ok := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	parameters := ssm.NewFromConfig(config)
	ok(parameters.PutParameter(t.Context(), &ssm.PutParameterInput{Name: aws.String("/prod/" + mark), Value: aws.String("CANARY-p"), Type: types.ParameterTypeSecureString}))
	secret, err := secretsmanager.NewFromConfig(config).CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{
		Name: aws.String("prod/" + mark), SecretString: aws.String(`{"username":"ann","password":"CANARY-s","port":5432}`),
	})
	ok(secret, err)
	objects := s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true })
	ok(objects.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("files-" + mark)}))
	ok(objects.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("files-" + mark), Key: aws.String("prod/a.env"), Body: strings.NewReader("# of prod\nLEVEL=debug\n")}))

	p := New(config, allowed{config.Credentials}, Auth{}, time.Now)
	d := taskdef.ContainerDefinition{
		Image:                 "reg.example.com/app",
		RepositoryCredentials: &taskdef.RepositoryCredentials{CredentialsParameter: *secret.ARN},
		EnvironmentFiles:      []taskdef.EnvironmentFile{{Type: "s3", Value: "arn:aws:s3:::files-" + mark + "/prod/a.env"}},
		Secrets: []taskdef.Secret{
			{Name: "KEY", ValueFrom: "/prod/" + mark}, {Name: "PASSWORD", ValueFrom: *secret.ARN + ":password::"}, {Name: "PORT", ValueFrom: *secret.ARN + ":port:AWSCURRENT:"},
		},
	}
	v, err := p.Values(t.Context(), need(d))
	ok(v, err)
	if !maps.Equal(v.Secrets, map[string]string{"KEY": "CANARY-p", "PASSWORD": "CANARY-s", "PORT": "5432"}) || !maps.Equal(v.Files, map[string]string{"LEVEL": "debug"}) {
		t.Errorf("secrets %q, files %q", v.Secrets, v.Files)
	}
	if login, err := p.Login(t.Context(), need(d)); err != nil || login.Username != "ann" || login.Password != "CANARY-s" {
		t.Errorf("login of %q, %v", login.Username, err)
	}
	for from, says := range map[string]string{
		"/prod/absent":                               "invalid parameters: /prod/absent",
		*secret.ARN + ":absent::":                    "did not contain json key absent",
		*secret.ARN + ":port:ABSENT:":                "ResourceNotFoundException",
		*secret.ARN + "absent":                       "ResourceNotFoundException",
		"arn:aws:s3:::files-" + mark + "/absent.env": "NoSuchKey",
		"arn:aws:s3:::absent/a.env":                  "NoSuchBucket",
	} {
		n := taskdef.ContainerDefinition{Secrets: []taskdef.Secret{{Name: "A", ValueFrom: from}}}
		if strings.Contains(from, ":s3:") {
			n = taskdef.ContainerDefinition{EnvironmentFiles: []taskdef.EnvironmentFile{{Type: "s3", Value: from}}}
		}
		_, err := p.Values(t.Context(), need(n))
		tells(t, err, fault.Invalid, says)
	}
}
