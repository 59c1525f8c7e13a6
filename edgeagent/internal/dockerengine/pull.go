package dockerengine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// flight is a pull that is under way, which all who want the image share.
type flight struct {
	done    chan struct{}
	err     error // to be read once done is closed
	waiting int
	cancel  context.CancelFunc
}

// pull fetches an image; one fetch of an image with one login goes on at a time. A
// caller that leaves does not end it for the others, and the last one to leave does.
func (e *Engine) pull(ctx context.Context, w want, tries int) error {
	e.mu.Lock()
	f := e.flights[w]
	if f == nil {
		shared, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f = &flight{done: make(chan struct{}), cancel: cancel}
		e.flights[w] = f
		go func() {
			defer cancel()
			err := e.fetch(shared, w, tries)
			e.mu.Lock()
			defer e.mu.Unlock()
			f.err = err
			if e.flights[w] == f {
				delete(e.flights, w)
			}
			close(f.done)
		}()
	}
	f.waiting++
	e.mu.Unlock()

	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.cancel()
		if e.flights[w] == f {
			delete(e.flights, w) // who comes now starts anew
		}
	}
	return fault.Wrap(fault.Unavailable, ctx.Err(), "pull %s", w.ref)
}

// fetch pulls, again after a while if that failed and may pass. Each try takes a
// place among those that go on at once, and between two it has none: registries that
// are dead hold up nobody for longer than one silence.
func (e *Engine) fetch(ctx context.Context, w want, tries int) error {
	if err := e.takePlace(ctx); err != nil {
		return classify(ctx, "pull "+w.ref, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.limits.Pull, fmt.Errorf("%w than %s", errLong, e.limits.Pull))
	defer cancel()
	wait := e.limits.PullRetry
	for try := 1; ; try++ {
		err := e.fetchOnce(ctx, w)
		e.leavePlace()
		if err == nil || try >= tries || !fault.Is(err, fault.NotFound) || final(err) {
			return err
		}
		select {
		case <-time.After(wait):
			wait *= 2
		case <-ctx.Done():
			return err
		}
		if e.takePlace(ctx) != nil {
			return err
		}
	}
}

func (e *Engine) takePlace(ctx context.Context) error {
	e.queued.Add(1)
	defer e.queued.Add(-1)
	err := e.places.Acquire(ctx, 1)
	if err == nil {
		e.pulling.Add(1)
	}
	return err
}

func (e *Engine) leavePlace() {
	e.pulling.Add(-1)
	e.places.Release(1)
}

// Pulls is how many pulls go on, and how many wait for their turn.
func (e *Engine) Pulls() (running, waiting int) {
	return int(e.pulling.Load()), int(e.queued.Load())
}

func (e *Engine) fetchOnce(ctx context.Context, w want) error {
	ref := w.ref
	api, err := e.connect(ctx)
	if err != nil {
		return classify(ctx, "pull "+ref, err)
	}
	auth, err := w.auth()
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "%s: pull of %s", cannotPull, ref)
	}
	before := e.idsBefore(ctx, api)
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	quiet := time.AfterFunc(e.limits.PullSilence, func() { giveUp(errQuiet) })
	defer quiet.Stop()
	body, err := api.ImagePull(ctx, ref, image.PullOptions{RegistryAuth: auth})
	var digest string
	if err == nil {
		defer body.Close()
		digest, err = progress(body, func() { quiet.Reset(e.limits.PullSilence) })
	}
	if err != nil {
		return e.pullFault(ctx, api, ref, err)
	}
	e.bring(ctx, api, ref, digest, before)
	return nil
}

var (
	errQuiet = errors.New("no progress for too long")
	errLong  = errors.New("it took longer")
)

// pullFault tells a registry that failed (NotFound, ECS's CannotPull…) from an
// engine that did (Unavailable). A pull that went quiet, or on for too long, may
// be either.
func (e *Engine) pullFault(ctx context.Context, api *client.Client, ref string, err error) error {
	if isVersionError(err) {
		e.renew(api)
	}
	if !silent(ctx, err) && !isVersionError(err) {
		return fault.Wrap(fault.NotFound, full(err), "%s", cannotPull)
	}
	cause := context.Cause(ctx)
	if (errors.Is(cause, errQuiet) || errors.Is(cause, errLong)) && e.Ping(context.WithoutCancel(ctx)) == nil {
		return fault.Wrap(fault.NotFound, cause, "%s: pull of %s", cannotPull, ref)
	}
	return classify(ctx, "pull "+ref, err)
}

// hopeless are the answers of registries that stay the same.
var hopeless = []string{
	"manifest unknown", "not found", "pull access denied", "does not exist", "repository name", "no matching manifest",
	"invalid reference", "unauthorized", "denied", "unsupported",
}

func final(err error) bool {
	if _, ok := errors.AsType[*agent.NoRoom](err); ok {
		return true
	}
	text := strings.ToLower(err.Error())
	return slices.ContainsFunc(hopeless, func(sign string) bool { return strings.Contains(text, sign) })
}

// progress reads what a pull says to its end: Docker answers 200 at once and
// puts a failure into the text. heard is called for every message. The digest is the
// one that the reference came to, "" if that is not said.
func progress(body io.Reader, heard func()) (digest string, err error) {
	for d := json.NewDecoder(body); ; {
		var m struct {
			Status string `json:"status"`
			Error  string `json:"error"`
			Detail struct {
				Message string `json:"message"`
			} `json:"errorDetail"`
		}
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return digest, nil
		} else if err != nil {
			return "", err
		}
		heard()
		if m.Detail.Message != "" {
			return "", errors.New(m.Detail.Message)
		}
		if m.Error != "" {
			return "", errors.New(m.Error)
		}
		if said, ok := strings.CutPrefix(m.Status, "Digest: "); ok {
			digest = said
		}
	}
}
