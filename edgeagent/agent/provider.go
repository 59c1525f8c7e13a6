package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/edgeagent/internal/supervise"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// Provider reads what a container's definition has kept in other services, with the
// task's execution role. It keeps no value; whoever asks again has it read again.
//
// Errors name what could not be had and never what is kept there. Denied and Invalid
// are final, Unavailable (no answer, or too many questions) may pass. Each begins with
// ECS's ResourceInitializationError.
type Provider interface {
	// Login is who pulls the container's image.
	Login(ctx context.Context, n Need) (Login, error)
	// Values are the container's environment files, secrets and secret log options.
	Values(ctx context.Context, n Need) (Values, error)
	// Forget drops the sessions of a task that has ended.
	Forget(task string)
	// Capabilities are the attributes that say what can be read, by ECS's names.
	Capabilities() []string
}

// Need is a container for which something is read.
type Need struct {
	ContainerID
	ExecutionRole string // its ARN, "" for none
	Definition    taskdef.ContainerDefinition
}

// outside says whether it has values to be read.
func (n Need) outside() bool {
	c := n.Definition
	return len(c.Secrets) > 0 || len(c.EnvironmentFiles) > 0 || n.logSecrets()
}

func (n Need) logSecrets() bool {
	l := n.Definition.LogConfiguration
	return l != nil && len(l.SecretOptions) > 0
}

// Values are what was read, by the name that the container knows it by. They are never
// printed.
type Values struct {
	// Files are the variables of environment files, which the definition's own come
	// before.
	Files map[string]string
	// Secrets are variables that have no other value.
	Secrets map[string]string
	// LogOptions are options of the log driver.
	LogOptions map[string]string
}

// Format keeps values out of every text that is made with fmt.
func (Values) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(values)") }

// MarshalText keeps them out of JSON.
func (Values) MarshalText() ([]byte, error) { return []byte("(values)"), nil }

// all are the values alone.
func (v Values) all() []string {
	return slices.Concat(slices.Collect(maps.Values(v.Files)), slices.Collect(maps.Values(v.Secrets)), slices.Collect(maps.Values(v.LogOptions)))
}

// give puts the values where the engine takes them from.
func (v Values) give(spec *Spec, own []taskdef.KeyValuePair) {
	env := maps.Clone(v.Files)
	if env == nil {
		env = map[string]string{}
	}
	for _, e := range own {
		delete(env, e.Name)
	}
	maps.Copy(env, v.Secrets)
	maps.Copy(env, spec.Environment)
	spec.Environment = env
	spec.LogOptions = v.LogOptions
}

var errNoProvider = fault.New(fault.Invalid, NoSecrets+": this agent reads nothing from other services")

// How ECS opens the texts of ends that what is kept elsewhere is to blame for.
const (
	NoSecrets = supervise.Initialization + ": unable to pull secrets or registry auth"
	NoFiles   = supervise.Initialization + ": failed to download env files"
)

func (s *shell) need(c taskdef.ContainerDefinition) Need {
	return Need{ContainerID: s.id(c.Name), ExecutionRole: s.def.ExecutionRoleArn, Definition: c}
}

// image pulls as whoever the definition says. While nobody can tell who that is, the
// image that is there will do, if the pull policy takes it without a login.
func (s *shell) image(ctx context.Context, c taskdef.ContainerDefinition) (string, error) {
	if s.a.Provider == nil {
		if c.RepositoryCredentials != nil {
			return "", errNoProvider
		}
		return s.a.Engine.Image(ctx, c.Image, Login{})
	}
	login, err := s.a.Provider.Login(ctx, s.need(c))
	if err != nil {
		if fault.Is(err, fault.Unavailable) {
			if digest, there := s.a.Engine.Image(ctx, c.Image, Login{}); there == nil {
				return digest, nil
			}
		}
		return "", err
	}
	s.learn(c.Name, false, login.Username, login.Password)
	digest, err := s.a.Engine.Image(ctx, c.Image, login)
	if err != nil { // nothing but the login was sent
		err = reworded(err, strike(err.Error(), []string{login.Username, login.Password}))
	}
	return digest, err
}

// values reads what the container's definition has elsewhere, for its creation.
func (s *shell) values(ctx context.Context, spec *Spec) error {
	c, ok := s.container(spec.Container)
	n := s.need(c)
	if !ok || !n.outside() {
		return nil
	}
	if s.a.Provider == nil {
		return errNoProvider
	}
	v, err := s.a.Provider.Values(ctx, n)
	if err != nil {
		return err
	}
	v.give(spec, c.Environment)
	s.learn(c.Name, true, v.all()...)
	return nil
}

// known are a container's secrets as far as this run of the agent has read them, to be
// taken out of texts.
type known struct {
	secrets []string
	whole   bool // its values were read
}

func (s *shell) learn(container string, whole bool, secrets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.known[container]
	for _, secret := range secrets {
		if !slices.Contains(k.secrets, secret) {
			k.secrets = append(k.secrets, secret)
		}
	}
	k.whole = k.whole || whole
	s.known[container] = k
}

const withheld = "what the engine says of it is withheld: it may quote a secret option of the log driver, which this run of the agent has not read"

// veil takes secrets out of what the engine says of a container: its log driver's
// options are quoted when that cannot be started.
func (s *shell) veil(container, text string) string {
	if text == "" {
		return ""
	}
	s.mu.Lock()
	k := s.known[container]
	secrets := slices.Clone(k.secrets)
	s.mu.Unlock()
	if s.def == nil { // adopted by its labels
		return withheld
	}
	if c, has := s.container(container); has && s.need(c).logSecrets() && !k.whole {
		return withheld
	}
	return strike(text, secrets)
}

// veiled is an error of the engine in which no secret is quoted.
func (s *shell) veiled(container string, err error) error {
	if err == nil {
		return nil
	}
	return reworded(err, s.veil(container, err.Error()))
}

func reworded(err error, text string) error {
	if text == err.Error() {
		return err
	}
	return &rewording{text, err}
}

// rewording is an error in other words: what it is made of can be asked for, and is
// not printed.
type rewording struct {
	text  string
	cause error
}

func (r *rewording) Error() string { return r.text }

// Unwrap lets kinds and ports be found, by which the caller decides.
func (r *rewording) Unwrap() error { return r.cause }

// shortest is the least length of a secret that is looked for in texts: shorter ones
// are in every text.
const shortest = 3

// strike replaces secrets in a text, also as a program quotes them.
func strike(text string, secrets []string) string {
	for _, secret := range slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return len(b) - len(a) }) {
		if len(secret) < shortest {
			continue
		}
		quoted := strconv.Quote(secret)
		ascii := strconv.QuoteToASCII(secret)
		forms := []string{secret, quoted[1 : len(quoted)-1], ascii[1 : len(ascii)-1], url.QueryEscape(secret), url.PathEscape(secret)}
		if text, err := json.Marshal(secret); err == nil { // it writes <, > and & in a way of its own
			forms = append(forms, string(text[1:len(text)-1]))
		}
		for _, form := range forms {
			text = strings.ReplaceAll(text, form, "***")
		}
	}
	return text
}
