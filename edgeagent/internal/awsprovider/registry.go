package awsprovider

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// Login implements agent.Provider: the definition's own (repositoryCredentials), or
// that of ECR by the image's registry, or one of the operator's settings, or nobody's.
func (p *Provider) Login(ctx context.Context, n agent.Need) (agent.Login, error) {
	if r := n.Definition.RepositoryCredentials; r != nil {
		login, err := p.privateLogin(ctx, n, r.CredentialsParameter)
		if err != nil {
			return agent.Login{}, initialization(err)
		}
		return login, nil
	}
	host, path := hostOf(n.Definition.Image)
	if r, ok := ecrOf(host); ok {
		login, err := p.ecrLogin(ctx, n, r)
		if err != nil {
			return agent.Login{}, initialization(err)
		}
		return login, nil
	}
	return find(p.logins, host+"/"+path), nil
}

// privateLogin reads a secret that holds a name and a password.
func (p *Provider) privateLogin(ctx context.Context, n agent.Need, name string) (agent.Login, error) {
	config, err := p.execution(ctx, n)
	if err != nil {
		return agent.Login{}, err
	}
	text, err := readSecret(ctx, config, secret{arn: name})
	if err != nil {
		return agent.Login{}, err
	}
	var held struct{ Username, Password string }
	if json.Unmarshal([]byte(text), &held) != nil || held.Username == "" || held.Password == "" {
		return agent.Login{}, fault.New(fault.Invalid, `unable to retrieve secret from asm: %s: it must be a JSON object with "username" and "password"`, name)
	}
	return agent.Login{Username: held.Username, Password: held.Password}, nil
}

// hostOf splits an image's name as Docker does.
func hostOf(image string) (host, path string) {
	host, path, ok := strings.Cut(image, "/")
	switch {
	case !ok:
		return dockerHub, "library/" + image
	case !strings.ContainsAny(host, ".:") && host != "localhost" && host == strings.ToLower(host): // no repository has capitals
		return dockerHub, image
	case hubNames[host]:
		return dockerHub, path
	}
	return host, path
}

const dockerHub = "docker.io"

var hubNames = map[string]bool{dockerHub: true, "index.docker.io": true}

// registry is one of ECR, by its host.
type registry struct {
	region          string
	fips, dualStack bool
}

// ecrHost names the domains of AWS one by one: a host that only looks alike would be
// sent a password that opens every repository the role may read.
var ecrHost = regexp.MustCompile(`^[0-9]{12}\.dkr([.-])ecr(-fips)?\.([a-z0-9-]+)\.(amazonaws\.com|amazonaws\.com\.cn|amazonaws\.eu|` +
	`on\.aws|on\.amazonwebservices\.com\.cn|on\.amazonwebservices\.eu|c2s\.ic\.gov|sc2s\.sgov\.gov|cloud\.adc-e\.uk|csp\.hci\.ic\.gov)$`)

func ecrOf(host string) (registry, bool) {
	m := ecrHost.FindStringSubmatch(host)
	if m == nil {
		return registry{}, false
	}
	return registry{region: m[3], dualStack: m[1] == "-", fips: m[2] != ""}, true
}

type tokenKey struct {
	role string // "" is the agent itself
	registry
}

// token is a login to ECR: asked for, or there.
type token struct{ *asking }

type asking struct {
	done  chan struct{}
	login agent.Login // what follows is to be read once done is closed
	err   error
	// By the clock on the wall: the other stands still while the machine sleeps.
	began, until time.Time
}

// tokenLasts is half of what a login to ECR lasts.
const tokenLasts = 6 * time.Hour

// ecrLogin is the login of the task's execution role, or of the agent where the task
// has none; it is the same for all tasks with the role until it ends, so that they share
// pulls.
func (p *Provider) ecrLogin(ctx context.Context, n agent.Need, r registry) (agent.Login, error) {
	key := tokenKey{n.ExecutionRole, r}
	p.mu.Lock()
	t, ok := p.tokens[key]
	if !ok || t.isOver(p.now()) {
		for other, t := range p.tokens {
			if t.isOver(p.now()) {
				delete(p.tokens, other)
			}
		}
		t = token{&asking{done: make(chan struct{}), began: p.now().Round(0)}}
		p.tokens[key] = t
		go func(ctx context.Context) {
			defer close(t.done)
			t.login, t.until, t.err = p.askECR(ctx, n, r, t.began.Add(tokenLasts))
		}(context.WithoutCancel(ctx))
	}
	p.mu.Unlock()
	select {
	case <-t.done:
		return t.login, t.err
	case <-ctx.Done():
		return agent.Login{}, fault.Wrap(fault.Unavailable, ctx.Err(), "%s", ecrWords)
	}
}

func (t token) isOver(now time.Time) bool {
	select {
	case <-t.done:
		now = now.Round(0)
		return t.err != nil || !now.Before(t.until) || now.Before(t.began) // that clock was set back
	default:
		return false
	}
}

const ecrWords = "unable to retrieve ecr registry auth"

// askECR asks for a login that is used until then, or its end if that is sooner.
func (p *Provider) askECR(ctx context.Context, n agent.Need, r registry, until time.Time) (login agent.Login, _ time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	config := p.config
	if n.ExecutionRole != "" {
		if config, err = p.as(ctx, n.ExecutionRole, n.Task); err != nil {
			return login, until, err
		}
	}
	client := ecr.NewFromConfig(config, func(o *ecr.Options) {
		o.Region = r.region
		if o.BaseEndpoint != nil {
			return
		}
		if r.fips {
			o.EndpointOptions.UseFIPSEndpoint = aws.FIPSEndpointStateEnabled
		}
		if r.dualStack {
			o.EndpointOptions.UseDualStackEndpoint = aws.DualStackEndpointStateEnabled
		}
	})
	out, err := client.GetAuthorizationToken(ctx, &ecr.GetAuthorizationTokenInput{})
	if err != nil {
		return login, until, classify(err, ecrWords)
	}
	if len(out.AuthorizationData) == 0 {
		return login, until, fault.New(fault.Unavailable, "%s: the answer has none", ecrWords)
	}
	data := out.AuthorizationData[0]
	user, password, ok := basic(aws.ToString(data.AuthorizationToken))
	if !ok {
		return login, until, fault.New(fault.Unavailable, "%s: the answer is no login", ecrWords)
	}
	if data.ExpiresAt != nil && data.ExpiresAt.Before(until) {
		until = *data.ExpiresAt
	}
	return agent.Login{Username: user, Password: password}, until, nil
}

// basic reads a name and a password as HTTP's basic authentication writes them.
func basic(text string) (user, password string, ok bool) {
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", "", false
	}
	user, password, ok = strings.Cut(string(plain), ":")
	return user, strings.TrimRight(password, "\x00"), ok && user != ""
}
