package dockerengine

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/registry"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

// want is an image as somebody pulls it. Pulls are shared between equal ones: who
// may not read an image does not get it by another's pull.
type want struct {
	ref   string // normalized
	login agent.Login
}

// auth is the login as the engine takes it, "" for none.
func (w want) auth() (string, error) {
	if w.login == (agent.Login{}) {
		return "", nil
	}
	return registry.EncodeAuthConfig(registry.AuthConfig{Username: w.login.Username, Password: w.login.Password})
}

// reader is who has pulled an image, without the password.
type reader struct {
	ref  string
	hash [sha256.Size]byte
}

func (w want) reader() reader {
	return reader{w.ref, sha256.Sum256([]byte(w.login.Username + "\x00" + w.login.Password))}
}

// maxReaders bounds the memory of who has pulled what; past it registries are asked again.
const maxReaders = 1000

// hasRead notes that a registry gave the image for this login.
func (e *Engine) hasRead(w want) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.login == (agent.Login{}) {
		delete(e.private, w.ref)
		return
	}
	if len(e.readers) >= maxReaders {
		clear(e.readers)
	}
	e.readers[w.reader()] = true
	e.private[w.ref] = true
}

// mayRead says whether the image that is there may be taken without asking its
// registry: as far as is known everybody may, or this login was given it before.
func (e *Engine) mayRead(w want) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.login == (agent.Login{}) {
		return !e.private[w.ref]
	}
	return e.readers[w.reader()]
}

// denials are how registries say that this login may not have the image.
var denials = []string{"denied", "unauthorized", "no basic auth credentials", "authentication required", "not authorized"}

// isKept says whether a pull failed since the registry keeps the image from this
// login: then the one that is there, which another's pull may have brought, is not
// taken instead. Without a login that is so of images that were pulled with one: for
// one that was built or loaded here, registries say denied, too.
func (e *Engine) isKept(w want, err error) bool {
	text := strings.ToLower(err.Error())
	if !slices.ContainsFunc(denials, func(sign string) bool { return strings.Contains(text, sign) }) {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return w.login != (agent.Login{}) || e.private[w.ref]
}
