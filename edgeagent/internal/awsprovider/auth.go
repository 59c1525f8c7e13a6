package awsprovider

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

// Auth are logins to registries from the operator's settings. The zero value has none.
type Auth struct{ logins []registryLogin }

// registryLogin is for all images whose names begin with a prefix: a registry's host,
// and as much of a path as the operator gave.
type registryLogin struct {
	prefix string
	login  agent.Login
}

// The kinds of auth data, by the names of ECS's agent.
const (
	AuthDockercfg = "dockercfg" // {"REGISTRY": {"auth": base64 of NAME:PASSWORD}}
	AuthDocker    = "docker"    // {"REGISTRY": {"username": …, "password": …}}
)

// ParseAuth reads logins in one of the forms of ECS's agent. Errors say nothing of what
// the data hold but the names of registries.
func ParseAuth(kind, data string) (Auth, error) {
	var all map[string]struct{ Auth, Username, Password string }
	switch {
	case kind == "" && data == "":
		return Auth{}, nil
	case kind != AuthDockercfg && kind != AuthDocker:
		return Auth{}, fmt.Errorf("the type must be one of %s, %s", AuthDockercfg, AuthDocker)
	case json.Unmarshal([]byte(data), &all) != nil || all == nil:
		return Auth{}, errors.New(`the data must be a JSON object of registries, as in {"registry.example.com": {…}}`)
	}
	var auth Auth
	for _, name := range slices.Sorted(maps.Keys(all)) {
		user, password, ok := all[name].Username, all[name].Password, true
		if kind == AuthDockercfg {
			user, password, ok = basic(all[name].Auth)
		}
		prefix := prefixOf(name)
		switch {
		case prefix == "":
			return Auth{}, errors.New("the data name a registry without a host")
		case !ok || user == "" || password == "":
			want := `"username" and "password"`
			if kind == AuthDockercfg {
				want = `"auth", the base64 of NAME:PASSWORD`
			}
			return Auth{}, fmt.Errorf("the data of registry %.100q must have %s", name, want)
		}
		auth.logins = append(auth.logins, registryLogin{prefix, agent.Login{Username: user, Password: password}})
	}
	return auth, nil
}

// prefixOf is a registry as images name it: without the scheme, and without the version
// of the protocol that Docker's own has in its name.
func prefixOf(name string) string {
	for _, scheme := range []string{"https://", "http://"} {
		name = strings.TrimPrefix(name, scheme)
	}
	name = strings.TrimRight(name, "/")
	for _, version := range []string{"/v1", "/v2"} {
		name = strings.TrimSuffix(name, version)
	}
	host, path, deep := strings.Cut(name, "/")
	if hubNames[host] {
		host = dockerHub
	}
	if deep {
		return host + "/" + path
	}
	return host
}

// find is the login with the longest prefix of an image's whole name, HOST/PATH. Another
// port is another host: who listens there is not given the password.
func find(logins []registryLogin, name string) agent.Login {
	best := registryLogin{}
	for _, l := range logins {
		rest, ok := strings.CutPrefix(name, l.prefix)
		ends := "/"
		if strings.Contains(l.prefix, "/") {
			ends = "/:@"
		}
		if ok && (rest == "" || strings.ContainsAny(rest[:1], ends)) && len(l.prefix) > len(best.prefix) {
			best = l
		}
	}
	return best.login
}
