package dockerengine

import (
	"context"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// Policy is when an image is pulled: the pull behaviours of the ECS agent.
type Policy string

const (
	// PolicyDefault pulls before every start and, where that fails, takes the
	// image that is there. A digest that is there is not asked for again: it
	// cannot have changed.
	PolicyDefault Policy = "default"
	// PolicyAlways pulls before every start, and fails with the pull.
	PolicyAlways Policy = "always"
	// PolicyOnce pulls what no task of this instance has pulled before, also if
	// it is there (baked into the machine image), and fails with the pull.
	PolicyOnce Policy = "once"
	// PolicyPreferCached pulls only what is not there.
	PolicyPreferCached Policy = "prefer-cached"
)

func (p Policy) known() bool {
	return slices.Contains([]Policy{PolicyDefault, PolicyAlways, PolicyOnce, PolicyPreferCached}, p)
}

// pulls says whether an image has to be pulled.
func (p Policy) pulls(present, pinned, before bool) bool {
	switch p {
	case PolicyAlways:
		return true
	case PolicyOnce:
		return !present || !before
	case PolicyPreferCached:
		return !present
	default:
		return !present || !pinned
	}
}

// forgives says whether the image that is there will do when the pull failed.
func (p Policy) forgives() bool { return p == PolicyDefault || p == PolicyPreferCached }

// imageKey names a digest that was looked up: an image can have several, one
// for each repository it came from.
type imageKey struct{ id, ref string }

// Image makes an image present by the pull policy. The digest is the registry's
// where one is known, else (an image built or loaded here) Docker's image id.
func (e *Engine) Image(ctx context.Context, ref string, login agent.Login) (string, error) {
	if ref == agent.PauseImage {
		return e.pauseImage(ctx)
	}
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "%s: image %q", cannotPull, ref)
	}
	named = reference.TagNameOnly(named)
	digest, present, err := e.held(ctx, ref)
	if err != nil {
		return "", err
	}
	_, pinned := named.(reference.Digested)
	before := false
	if e.policy == PolicyOnce && present {
		if before, err = e.pulledBefore(ctx, ref); err != nil {
			return "", err
		}
	}
	w := want{named.String(), login}
	if !e.policy.pulls(present, pinned && e.mayRead(w), before) {
		return digest, nil
	}
	tries := e.limits.PullTries
	if present && e.policy.forgives() {
		tries = 1
	}
	if err := e.pull(ctx, w, tries); err != nil {
		if present && e.policy.forgives() && !fault.Is(err, fault.Unavailable) && !e.isKept(w, err) {
			return digest, nil
		}
		return "", err
	}
	e.mu.Lock()
	e.pulled[ref] = true
	e.mu.Unlock()
	e.hasRead(w)
	digest, present, err = e.held(ctx, ref)
	if err == nil && !present {
		err = fault.New(fault.NotFound, "%s: image %s was pulled and is not there", cannotPull, ref)
	}
	return digest, err
}

// held says whether the engine has an image, and its digest.
func (e *Engine) held(ctx context.Context, ref string) (digest string, present bool, err error) {
	err = e.do(ctx, "inspect image "+ref, e.limits.Inspect, func(ctx context.Context, api *client.Client) error {
		i, err := api.ImageInspect(ctx, ref)
		if cerrdefs.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		digest, present = chooseDigest(i.ID, ref, e.said[fullName(ref)], i.RepoDigests), true
		if len(e.digests) >= maxDigests {
			clear(e.digests)
		}
		e.digests[imageKey{i.ID, ref}] = digest
		return nil
	})
	return digest, present, err
}

// pulledBefore says whether a task of this instance has pulled the image: in
// this life of the agent, or in an earlier one that left a container of it.
func (e *Engine) pulledBefore(ctx context.Context, ref string) (bool, error) {
	e.mu.Lock()
	before := e.pulled[ref]
	e.mu.Unlock()
	if before {
		return true, nil
	}
	err := e.do(ctx, "list containers", e.limits.List, func(ctx context.Context, api *client.Client) error {
		list, err := api.ContainerList(ctx, container.ListOptions{All: true, Filters: e.only()})
		before = slices.ContainsFunc(list, func(c container.Summary) bool { return c.Image == ref })
		return err
	})
	return before, err
}

// chooseDigest picks the digest an image has in the repository it is asked for
// by. It may have several there, as an index and what that leads to, or as one that
// was pushed twice: then it is the one asked for, or the one that the tag's last pull
// said. Without any it is the image's id.
func chooseDigest(id, ref, said string, digests []string) string {
	want, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return id
	}
	if pinned, ok := want.(reference.Digested); ok {
		said = pinned.Digest().String()
	}
	var found []string
	for _, d := range digests {
		have, err := reference.ParseNormalizedNamed(d)
		if err != nil || have.Name() != want.Name() {
			continue
		}
		if digested, ok := have.(reference.Digested); ok {
			found = append(found, digested.Digest().String())
		}
	}
	switch {
	case len(found) == 0:
		return id
	case slices.Contains(found, said):
		return said
	}
	return found[0]
}

// fullName is a reference with all that may be left out.
func fullName(ref string) string {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return ref
	}
	return reference.TagNameOnly(named).String()
}

// maxDigests bounds the memory of digests; past it they are looked up again.
const maxDigests = 1000

// digest is that of a container's image. An image without a digest to be found
// is known by its id: showing a container never fails for want of one.
func (e *Engine) digest(ctx context.Context, api *client.Client, id, ref string) string {
	key := imageKey{id, ref}
	e.mu.Lock()
	known, ok := e.digests[key]
	e.mu.Unlock()
	if ok {
		return known
	}
	i, err := api.ImageInspect(ctx, id)
	if err != nil {
		return id
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	found := chooseDigest(id, ref, e.said[fullName(ref)], i.RepoDigests)
	if len(e.digests) >= maxDigests {
		clear(e.digests)
	}
	e.digests[key] = found
	return found
}
