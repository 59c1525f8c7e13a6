// Package eventbus is control.Bus on EventBridge: PutEvents, in calls of at most
// ten entries, each again until it is taken or the time is over. It decides nothing
// about what is published. Only the mains under lambdas import it.
package eventbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

// Source is the source of every event of ours.
const Source = "longshore"

// What one call of PutEvents takes, by entries and by bytes in all.
const (
	callEntries = 10
	callBytes   = 256 * 1024
	timeBytes   = 14 // what EventBridge counts for an entry's time
)

const (
	attempts   = 2 // of one call, by the client itself
	tries      = 6 // of one entry, over several calls
	firstPause = 50 * time.Millisecond
	endsBefore = 3 * time.Second // of the time that is left, so that what is done can be told
)

// Bus publishes to one event bus. It is safe for concurrent use.
type Bus struct {
	client *eventbridge.Client
	name   string
	pause  func(ctx context.Context, try int)
}

var _ control.Bus = (*Bus)(nil)

// New publishes to the bus with a name. pause waits between tries; nil means a
// jittered, growing wait.
func New(config aws.Config, name string, pause func(ctx context.Context, try int)) *Bus {
	client := eventbridge.NewFromConfig(config, func(o *eventbridge.Options) {
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) { r.MaxAttempts = attempts })
	})
	if pause == nil {
		pause = wait
	}
	return &Bus{client: client, name: name, pause: pause}
}

// Publish implements control.Bus.
func (b *Bus) Publish(ctx context.Context, events []control.Event) []error {
	p := &publication{bus: b, errs: make([]error, len(events)), done: make([]bool, len(events))}
	for i, e := range events {
		entry, size, err := b.entry(e)
		if err != nil {
			p.errs[i], p.done[i] = err, true
		}
		p.entries, p.sizes, p.keys = append(p.entries, entry), append(p.sizes, size), append(p.keys, keyOf(e))
	}
	p.run(ctx)
	return p.errs
}

func keyOf(e control.Event) string {
	if len(e.Resources) == 0 {
		return ""
	}
	return e.Resources[0]
}

// entry is an event as EventBridge takes it, and what it counts of its bytes. One
// that is too big goes without what can be asked for elsewhere.
func (b *Bus) entry(e control.Event) (types.PutEventsRequestEntry, int, error) {
	fixed := len(e.Type) + len(Source) + timeBytes
	for _, r := range e.Resources {
		fixed += len(r)
	}
	detail, err := shorten(e.Detail, callBytes-fixed)
	if err != nil {
		return types.PutEventsRequestEntry{}, 0, fault.Wrap(fault.Invalid, err, "event %s of %s", e.Type, keyOf(e))
	}
	return types.PutEventsRequestEntry{
		EventBusName: &b.name, Source: aws.String(Source), DetailType: aws.String(e.Type), Resources: e.Resources,
		Time: aws.Time(e.At), Detail: aws.String(string(detail)),
	}, fixed + len(detail), nil
}

// omittable are the members of a detail that are left out if it is too big, in
// this order. What tells the state, statuses and reasons and version, is not
// among them.
var omittable = []string{"overrides", "tags", "attributes", "containers"}

// shorten leaves members out until a detail fits, and names them in "omitted".
func shorten(detail json.RawMessage, most int) (json.RawMessage, error) {
	if len(detail) <= most {
		return detail, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(detail, &members); err != nil {
		return nil, fmt.Errorf("shorten %d bytes: %w", len(detail), err)
	}
	var gone []string
	for _, name := range omittable {
		if _, there := members[name]; !there {
			continue
		}
		delete(members, name)
		gone = append(gone, name)
		members["omitted"], _ = json.Marshal(gone) // a list of names
		short, err := json.Marshal(members)
		if err != nil || len(short) <= most {
			return short, err
		}
	}
	return nil, fmt.Errorf("has %d bytes, %d are allowed, and nothing is left to leave out", len(detail), most)
}

// publication is the events of one call of Publish on their way.
type publication struct {
	bus     *Bus
	entries []types.PutEventsRequestEntry
	sizes   []int
	keys    []string
	errs    []error // the last of each; what is done has its final one
	done    []bool
	tries   int  // since anything was delivered
	alone   bool // one entry a call: a call was refused for one of several
}

// run makes calls until all is done or the time is over. Nothing of a resource is
// sent before what comes before it was taken.
func (p *publication) run(ctx context.Context) {
	for {
		call := p.next()
		if len(call) == 0 {
			return
		}
		if p.tries >= tries || outOfTime(ctx) {
			p.giveUp(ctx)
			return
		}
		if p.tries > 0 {
			p.bus.pause(ctx, p.tries)
		}
		if p.call(ctx, call) {
			p.tries = 0
		} else {
			p.tries++
		}
	}
}

// next are the places of what the next call takes: the first of each resource that
// is not done, in order.
func (p *publication) next() []int {
	var call []int
	ahead, bytes := map[string]bool{}, 0
	for i := range p.entries {
		if p.done[i] || ahead[p.keys[i]] {
			continue
		}
		ahead[p.keys[i]] = true
		if bytes += p.sizes[i]; bytes > callBytes || len(call) == callEntries || p.alone && len(call) == 1 {
			break
		}
		call = append(call, i)
	}
	return call
}

// call sends some entries and notes what became of each; it says whether that is
// any step forward.
func (p *publication) call(ctx context.Context, places []int) (some bool) {
	in := &eventbridge.PutEventsInput{}
	for _, i := range places {
		in.Entries = append(in.Entries, p.entries[i])
	}
	out, err := p.bus.client.PutEvents(ctx, in)
	if err == nil && len(out.Entries) != len(places) {
		err = fmt.Errorf("%d answers for %d events", len(out.Entries), len(places))
	}
	if err != nil && codeOf(err) == invalidCall && len(places) > 1 {
		p.alone = true
		return true
	}
	for k, i := range places {
		switch {
		case err != nil:
			p.errs[i] = fault.Wrap(kindOf(err), err, "put event of %s", p.keys[i])
		case aws.ToString(out.Entries[k].ErrorCode) != "":
			p.errs[i] = refused(p.keys[i], out.Entries[k])
		default:
			p.errs[i] = nil
		}
		if p.done[i] = p.errs[i] == nil || fault.Is(p.errs[i], fault.Invalid); p.done[i] {
			some = true
		}
	}
	return some
}

// giveUp leaves an error for everything that is not done.
func (p *publication) giveUp(ctx context.Context) {
	for i := range p.entries {
		if !p.done[i] && p.errs[i] == nil {
			p.errs[i] = fault.New(fault.Unavailable, "event of %s not sent: what comes before it was not taken (%v)", p.keys[i], ctx.Err())
		}
	}
}

// refused is the error of one entry: EventBridge says so of each by itself.
func refused(key string, answer types.PutEventsResultEntry) error {
	kind := fault.Unavailable
	switch aws.ToString(answer.ErrorCode) {
	case "MalformedDetail", "InvalidArgument":
		kind = fault.Invalid
	}
	return fault.New(kind, "put event of %s: %s: %s", key, aws.ToString(answer.ErrorCode), aws.ToString(answer.ErrorMessage))
}

// invalidCall is how a call is refused that holds what never can be taken.
const invalidCall = "ValidationException"

// kindOf is Invalid only for what the event itself is refused for. A missing bus
// or right can be mended, and the events are worth waiting.
func kindOf(err error) fault.Kind {
	code := codeOf(err)
	answer, ok := errors.AsType[*smithyhttp.ResponseError](err)
	_, throttled := retry.DefaultThrottleErrorCodes[code]
	switch {
	case code == invalidCall:
		return fault.Invalid
	case code == "", throttled, ok && answer.HTTPStatusCode() >= http.StatusInternalServerError:
		return fault.Unavailable
	}
	return fault.Internal
}

// codeOf is EventBridge's code of an error, "" if there was no answer.
func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

func outOfTime(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < endsBefore
}

func wait(ctx context.Context, try int) {
	timer := time.NewTimer(firstPause/2<<min(try, 6) + time.Duration(rand.Int64N(int64(firstPause))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
