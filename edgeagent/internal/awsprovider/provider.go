// Package awsprovider is agent.Provider on AWS: parameters of SSM, secrets of Secrets
// Manager, environment files in S3, and logins to ECR and private registries, read with
// the sessions of execution roles. It keeps logins to ECR until they end, and no other
// value. The agent's main imports it.
package awsprovider

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// Sessions are those of execution roles.
type Sessions interface {
	Credentials(ctx context.Context, role, name string) (aws.Credentials, error)
	Drop(name string)
}

// patience bounds one question to a service with its retries.
const patience = 20 * time.Second

// Provider reads for the tasks of one agent. It is safe for concurrent use.
type Provider struct {
	config   aws.Config // region, endpoints and the agent's own credentials
	sessions Sessions
	logins   []registryLogin
	now      func() time.Time

	mu     sync.Mutex
	tokens map[tokenKey]token
}

var _ agent.Provider = (*Provider)(nil)

// New makes a provider that asks where config says. Auth are the logins of the
// operator's settings.
func New(config aws.Config, sessions Sessions, auth Auth, now func() time.Time) *Provider {
	return &Provider{config: config, sessions: sessions, logins: auth.logins, now: now, tokens: map[tokenKey]token{}}
}

// Capabilities implements agent.Provider.
func (p *Provider) Capabilities() []string {
	return []string{
		taskdef.CapabilityPullECR, taskdef.CapabilityPrivateRegistry, taskdef.CapabilityEnvironmentFiles,
		taskdef.CapabilitySecretsSSM, taskdef.CapabilitySecretsASM, taskdef.CapabilityLogSecretsSSM, taskdef.CapabilityLogSecretsASM,
	}
}

// Forget implements agent.Provider.
func (p *Provider) Forget(task string) { p.sessions.Drop(task) }

// Values implements agent.Provider. The first thing that cannot be had is told, and
// of those of one kind all.
func (p *Provider) Values(ctx context.Context, n agent.Need) (agent.Values, error) {
	c := n.Definition
	var v agent.Values
	var options []taskdef.Secret
	if c.LogConfiguration != nil {
		options = c.LogConfiguration.SecretOptions
	}
	config, err := p.execution(ctx, n)
	if err != nil {
		return v, initialization(err)
	}
	found, err := readSecrets(ctx, config, append(append([]taskdef.Secret{}, c.Secrets...), options...))
	if err != nil {
		return v, initialization(err)
	}
	if v.Secrets, err = named(c.Secrets, found); err == nil {
		v.LogOptions, err = named(options, found)
	}
	if err != nil {
		return agent.Values{}, initialization(err)
	}
	v.Files = map[string]string{}
	for _, f := range c.EnvironmentFiles {
		read, err := readFile(ctx, config, f.Value)
		if err != nil {
			return agent.Values{}, filesFault(err)
		}
		// As in ECS, of several files with one variable the first counts.
		maps.Copy(read, v.Files)
		v.Files = read
	}
	if err := fits(v); err != nil {
		return agent.Values{}, initialization(err)
	}
	return v, nil
}

// execution is the SDK's configuration with the task's execution role.
func (p *Provider) execution(ctx context.Context, n agent.Need) (aws.Config, error) {
	if n.ExecutionRole == "" {
		return aws.Config{}, fault.New(fault.Invalid, "the task has no execution role to read them with (executionRoleArn)")
	}
	return p.as(ctx, n.ExecutionRole, n.Task)
}

// as is the SDK's configuration with a role's session, whose name is, as in ECS, the
// task's id.
func (p *Provider) as(ctx context.Context, role, session string) (aws.Config, error) {
	credentials, err := p.sessions.Credentials(ctx, role, session)
	if err != nil {
		return aws.Config{}, err
	}
	config := p.config.Copy()
	config.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return credentials, nil })
	return config, nil
}

// named are the values of some secrets by their names.
func named(list []taskdef.Secret, found map[string]string) (map[string]string, error) {
	values := make(map[string]string, len(list))
	for _, s := range list {
		value := found[s.ValueFrom]
		if strings.ContainsRune(value, 0) {
			return nil, fault.New(fault.Invalid, "%s: its value has a zero byte, which no variable can hold", s.ValueFrom)
		}
		values[s.Name] = value
	}
	return values, nil
}

const (
	// maxVariable is Linux's bound of a variable with its name (MAX_ARG_STRLEN); what is
	// longer keeps the container from starting.
	maxVariable = 128 << 10
	// maxVariables bounds all that is given to one container.
	maxVariables = 1 << 20
)

// fits says whether a container can be given the variables.
func fits(v agent.Values) error {
	sum := 0
	for _, all := range []map[string]string{v.Secrets, v.Files} {
		for name, value := range all {
			size := len(name) + len(value) + 2
			if size > maxVariable {
				return fault.New(fault.Invalid, "the value of %s has %d bytes; Linux allows a variable %d with its name", name, len(value), maxVariable)
			}
			sum += size
		}
	}
	if sum > maxVariables {
		return fault.New(fault.Invalid, "secrets and environment files have %d bytes together; allowed are %d", sum, maxVariables)
	}
	return nil
}
