package taskdef

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxEnvironmentFiles is how many environment files a container may have.
const maxEnvironmentFiles = 10

// The names of what is kept in other services.
var (
	parameterName = regexp.MustCompile(`^/?[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$`)
	parameterForm = regexp.MustCompile(`^arn:aws[a-z-]*:ssm:[a-z0-9-]+:[0-9]{12}:parameter/[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$`)
	secretName    = regexp.MustCompile(`^[A-Za-z0-9/_+=.@!-]+$`)
	secretForm    = regexp.MustCompile(`^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@!-]+$`)
	objectForm    = regexp.MustCompile(`^arn:aws[a-z-]*:s3:::[A-Za-z0-9._-]+/[^\x00]*\.env$`)
	ecrForm       = regexp.MustCompile(`^[0-9]{12}\.dkr[.-]ecr(-fips)?\.[a-z0-9-]+\.[a-z0-9.]+/`)
)

// outside judges what is read from other services, and that there is a role to read it with.
func (j *judge) outside() {
	j.role("taskRoleArn", j.def.TaskRoleArn)
	j.role("executionRoleArn", j.def.ExecutionRoleArn)
	for i, c := range j.def.ContainerDefinitions {
		path := fmt.Sprintf("containerDefinitions[%d]", i)
		j.secrets(path+".secrets", c.Secrets)
		if l := c.LogConfiguration; l != nil {
			j.secrets(path+".logConfiguration.secretOptions", l.SecretOptions)
			for k, s := range l.SecretOptions {
				if _, taken := l.Options[s.Name]; taken {
					j.invalid(fmt.Sprintf("%s.logConfiguration.secretOptions[%d].name", path, k), "is %s, which options has already", show(s.Name))
				}
			}
		}
		j.environmentFiles(path+".environmentFiles", c.EnvironmentFiles)
		if r := c.RepositoryCredentials; r != nil {
			j.login(path+".repositoryCredentials.credentialsParameter", r.CredentialsParameter)
		}
	}
	j.together()
}

// together judges what overrides may break: the secrets beside the environment, and the role by which they are read.
func (j *judge) together() {
	for i, c := range j.def.ContainerDefinitions {
		for k, s := range c.Secrets {
			if s.Name != "" && slices.ContainsFunc(c.Environment, func(e KeyValuePair) bool { return e.Name == s.Name }) {
				j.shared(fmt.Sprintf("containerDefinitions[%d].secrets[%d].name", i, k), s.Name)
			}
		}
	}
	if what := j.def.readsOutside(); what != "" && j.def.ExecutionRoleArn == "" {
		j.invalid("executionRoleArn", "is required: When you are specifying %s, you must also specify a value for 'executionRoleArn'.", what)
	}
}

// shared tells in ECS's words of a name that stands for two values.
func (j *judge) shared(path, name string) {
	j.invalid(path, "cannot be used: The secret name must be unique and not shared with any new or existing environment variables set on the container, such as '%s'.",
		strings.Trim(show(name), `"`))
}

// readsOutside names what the agent reads for the task's containers before they start, "" if that is nothing.
func (s Spec) readsOutside() string {
	for _, c := range s.ContainerDefinitions {
		switch {
		case len(c.Secrets) > 0:
			return "container secrets"
		case c.LogConfiguration != nil && len(c.LogConfiguration.SecretOptions) > 0:
			return "log secret options"
		case len(c.EnvironmentFiles) > 0:
			return "environment files"
		case c.RepositoryCredentials != nil:
			return "repository credentials"
		}
	}
	return ""
}

func (j *judge) secrets(path string, list []Secret) {
	seen := map[string]bool{}
	for i, s := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case !j.required(at+".name", s.Name):
		case strings.ContainsAny(s.Name, "=\x00"):
			j.invalid(at+".name", "is %s; it must not hold = or a zero byte", show(s.Name))
		case seen[s.Name]:
			j.shared(at+".name", s.Name)
		}
		seen[s.Name] = true
		if j.required(at+".valueFrom", s.ValueFrom) && secretService(s.ValueFrom) == "" {
			j.invalid(at+".valueFrom", "is %s; allowed are the name or the ARN of an SSM parameter, and the ARN of a Secrets Manager secret, alone or with :JSON-KEY:VERSION-STAGE:VERSION-ID",
				show(s.ValueFrom))
		}
	}
}

// The services that keep secrets, as ECS's attributes call them.
const (
	serviceParameters = "ssm"
	serviceSecrets    = "asm"
)

// secretService is the service that keeps what valueFrom names, "" if it names nothing.
func secretService(valueFrom string) string {
	if !strings.HasPrefix(valueFrom, "arn:") {
		if parameterName.MatchString(valueFrom) {
			return serviceParameters
		}
		return ""
	}
	if parameterForm.MatchString(valueFrom) {
		return serviceParameters
	}
	// What follows the ARN has three parts, each of which may be empty.
	if parts := strings.Split(valueFrom, ":"); len(parts) == 10 {
		valueFrom = strings.Join(parts[:7], ":")
	}
	if secretForm.MatchString(valueFrom) {
		return serviceSecrets
	}
	return ""
}

func (j *judge) environmentFiles(path string, list []EnvironmentFile) {
	if len(list) > maxEnvironmentFiles {
		j.invalid(path, "are %d; allowed are %d", len(list), maxEnvironmentFiles)
	}
	for i, f := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		j.required(at+".type", f.Type)
		if j.required(at+".value", f.Value) && !objectForm.MatchString(f.Value) {
			j.invalid(at+".value", "is %s; allowed is the ARN of an S3 object whose name ends in .env: arn:PARTITION:s3:::BUCKET/KEY.env", show(f.Value))
		}
	}
}

// login judges where the name and password for a registry are kept.
func (j *judge) login(path, secret string) {
	switch {
	case !j.required(path, secret):
	case !secretForm.MatchString(secret) && !secretName.MatchString(secret):
		j.invalid(path, "is %s; allowed are the name and the ARN of a Secrets Manager secret", show(secret))
	}
}
