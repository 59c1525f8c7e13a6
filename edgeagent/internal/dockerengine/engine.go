package dockerengine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docker/docker/client"
	"golang.org/x/sync/semaphore"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// Engine is a Docker engine as one container instance uses it. Any number of
// goroutines may call it.
type Engine struct {
	host     string
	instance string
	cluster  string
	policy   Policy
	limits   Limits
	now      func() time.Time
	taken    func(tcp, udp []int) ([]int, []int) // nil: the host's ports cannot be seen

	pause  pauseProgram
	groups grouping

	turn    chan struct{} // held by the one who negotiates the API version
	pausing chan struct{} // and by the one who has the pause image made

	mu      sync.Mutex
	api     *client.Client
	ready   bool // api speaks a version the engine knows
	ids     map[agent.ContainerID]string
	digests map[imageKey]string
	pulled  map[string]bool
	flights map[want]*flight
	readers map[reader]bool   // who has pulled what in this life
	private map[string]bool   // images that were pulled with a login in this life
	said    map[string]string // the digest that a tag's last pull came to
	brought []agent.Pulled    // by pulls, until it is asked for
	roots   []string          // where the engine keeps its images, once known

	places          *semaphore.Weighted // of pulls that go on at once, in the order of asking
	pulling, queued atomic.Int64
}

var (
	_ agent.Engine     = (*Engine)(nil)
	_ agent.ImageStore = (*Engine)(nil)
)

// Option changes how an Engine works.
type Option func(*Engine)

// WithPolicy says when images are pulled; PolicyDefault if nothing is said.
func WithPolicy(p Policy) Option { return func(e *Engine) { e.policy = p } }

// WithLimits replaces the deadlines of calls.
func WithLimits(l Limits) Option { return func(e *Engine) { e.limits = l } }

// WithNow replaces the clock by which an event stream reaches back.
func WithNow(now func() time.Time) Option { return func(e *Engine) { e.now = now } }

// New makes the engine at host (unix:///var/run/docker.sock, tcp://…) for one
// container instance. It does not connect: an engine that is down is an
// Unavailable of the first call. The cluster is for labels, where a Spec names
// none.
func New(host, instanceID, cluster string, options ...Option) (*Engine, error) {
	if instanceID == "" {
		return nil, fault.New(fault.Invalid, "make engine: the instance has no id")
	}
	e := &Engine{
		host: host, instance: instanceID, cluster: cluster,
		policy: PolicyDefault, limits: DefaultLimits(), now: time.Now,
		pause:   pauseProgram{thisProgram, []string{pauseCommand}},
		turn:    make(chan struct{}, 1),
		pausing: make(chan struct{}, 1),
		ids:     map[agent.ContainerID]string{},
		digests: map[imageKey]string{},
		pulled:  map[string]bool{},
		flights: map[want]*flight{},
		readers: map[reader]bool{},
		private: map[string]bool{},
		said:    map[string]string{},
	}
	for _, o := range options {
		o(e)
	}
	if !e.policy.known() {
		return nil, fault.New(fault.Invalid, "make engine: pull policy %q; allowed: default, always, once, prefer-cached", e.policy)
	}
	e.places = semaphore.NewWeighted(int64(max(1, e.limits.Pulls)))
	api, err := e.dial()
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "make engine: host %q", host)
	}
	e.api = api
	return e, nil
}

// Close gives idle connections back.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.api.Close()
}

func (e *Engine) dial() (*client.Client, error) {
	return client.NewClientWithOpts(client.WithHost(e.host), client.WithAPIVersionNegotiation(), client.WithUserAgent("longshore-agent"))
}

// connect returns a client that speaks the engine's API version. The client
// would negotiate by itself, but under a lock that knows no context: behind one
// stalled call all others would wait, past their deadlines.
func (e *Engine) connect(ctx context.Context) (*client.Client, error) {
	if api, ready := e.current(); ready {
		return api, nil
	}
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	api, ready := e.current()
	if ready {
		return api, nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.limits.Ping)
	defer cancel()
	pong, err := api.Ping(ctx)
	if err != nil {
		return nil, err
	}
	if pong.APIVersion == "" {
		return nil, errMute
	}
	api.NegotiateAPIVersionPing(pong)
	e.mu.Lock()
	e.ready = true
	e.mu.Unlock()
	return api, nil
}

var errMute = errors.New("the engine answered without saying its API version")

func (e *Engine) current() (*client.Client, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.api, e.ready
}

// renew drops a client whose API version the engine no longer takes: it has
// been replaced by another version while this program ran. A client only ever
// goes down in version, so a new one is made.
func (e *Engine) renew(old *client.Client) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.api != old {
		return
	}
	if api, err := e.dial(); err == nil {
		_ = old.Close()
		e.api, e.ready = api, false
	}
}

// do runs a call to the engine within a limit and gives its error a kind.
func (e *Engine) do(ctx context.Context, verb string, limit time.Duration, call func(context.Context, *client.Client) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer to %s within %s", verb, limit))
	defer cancel()
	api, err := e.connect(ctx)
	if err == nil {
		err = call(ctx, api)
	}
	if err == nil {
		return nil
	}
	if isVersionError(err) {
		e.renew(api)
	}
	if !silent(ctx, err) {
		if gone := e.stays(ctx, verb); gone != nil { // what it says then says nothing
			return gone
		}
	}
	return classify(ctx, verb, err)
}
