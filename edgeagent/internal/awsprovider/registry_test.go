package awsprovider

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

func imageOf(name string) taskdef.ContainerDefinition {
	return taskdef.ContainerDefinition{Image: name}
}

func TestECROf_KnowsTheDomainsOfAWSAndNoOther(t *testing.T) {
	const account = "123456789012"
	for host, want := range map[string]registry{
		account + ".dkr.ecr.us-east-1.amazonaws.com":                   {region: "us-east-1"},
		account + ".dkr.ecr.cn-north-1.amazonaws.com.cn":               {region: "cn-north-1"},
		account + ".dkr.ecr-fips.us-gov-west-1.amazonaws.com":          {region: "us-gov-west-1", fips: true},
		account + ".dkr-ecr.eu-west-1.on.aws":                          {region: "eu-west-1", dualStack: true},
		account + ".dkr-ecr-fips.us-east-2.on.aws":                     {region: "us-east-2", dualStack: true, fips: true},
		account + ".dkr-ecr.cn-north-1.on.amazonwebservices.com.cn":    {region: "cn-north-1", dualStack: true},
		account + ".dkr.ecr.us-iso-east-1.c2s.ic.gov":                  {region: "us-iso-east-1"},
		account + ".dkr.ecr.eusc-de-east-1.amazonaws.eu":               {region: "eusc-de-east-1"},
		account + ".dkr.ecr.us-east-1.example.com":                     {},
		account + ".dkr.ecr.us-east-1.amazonaws.com.example.com":       {},
		account + ".dkr.ecr.us-east-1.amazonaws.com:443":               {},
		"evil.example/" + account + ".dkr.ecr.us-east-1.amazonaws.com": {},
		"x" + account + ".dkr.ecr.us-east-1.amazonaws.com":             {},
		"public.ecr.aws": {},
		"docker.io":      {},
	} {
		if got, ok := ecrOf(host); got != want || ok != (want != registry{}) {
			t.Errorf("%s is %+v, %t; want %+v", host, got, ok, want)
		}
	}
}

func TestHostOf_SplitsAsDockerDoes(t *testing.T) {
	for image, want := range map[string]string{
		"busybox": "docker.io library/busybox", "busybox:1@sha256:x": "docker.io library/busybox:1@sha256:x", "ann/app": "docker.io ann/app",
		"docker.io/ann/app": "docker.io ann/app", "index.docker.io/ann/app": "docker.io ann/app", "localhost/app": "localhost app",
		"127.0.0.1:5000/app:1": "127.0.0.1:5000 app:1", "reg.example.com/a/b": "reg.example.com a/b",
		"REGISTRY/app": "REGISTRY app", // who answers to that name is not Docker's own, and not given its password
	} {
		if host, path := hostOf(image); host+" "+path != want {
			t.Errorf("%s is %s %s, want %s", image, host, path, want)
		}
	}
}

func TestLogin_OfECRIsThatOfTheRoleInTheRegistrysRegion(t *testing.T) {
	c, s, p := bench(t, Auth{})
	const ours, away = "123456789012.dkr.ecr.us-east-1.amazonaws.com/app:1", "210987654321.dkr.ecr.eu-west-1.amazonaws.com/app@sha256:x"
	first, err := p.Login(t.Context(), need(imageOf(ours)))
	if err != nil || first != (agent.Login{Username: "AWS", Password: canary + "-token-1"}) {
		t.Fatalf("%s, %v", first.Username, err)
	}
	other := need(imageOf("999999999999.dkr.ecr.us-east-1.amazonaws.com/other"))
	other.Task = "task-2"
	if second, err := p.Login(t.Context(), other); err != nil || second != first {
		t.Errorf("another task with the role and region has another login, %v: they would not share a pull", err)
	}
	if third, err := p.Login(t.Context(), need(imageOf(away))); err != nil || third == first {
		t.Errorf("another region has the same login, %v", err)
	}
	none := need(imageOf(ours))
	none.ExecutionRole = ""
	if fourth, err := p.Login(t.Context(), none); err != nil || fourth == first {
		t.Errorf("a task without a role has a role's login, %v", err)
	}
	want := "ecrGetAuthorizationToken us-east-1 key-of-exec,ecrGetAuthorizationToken eu-west-1 key-of-exec,ecrGetAuthorizationToken us-east-1 key-of-agent"
	if got := strings.Join(c.asked, ","); got != want {
		t.Errorf("asked %s", got)
	}
	if got := strings.Join(s.asked, ","); got != roleARN+" task-1,"+roleARN+" task-1" {
		t.Errorf("sessions %s", got)
	}
}

func TestLogin_OfECREnds(t *testing.T) {
	c, _, p := bench(t, Auth{})
	clock := time.Now()
	p.now = func() time.Time { return clock }
	n := need(imageOf("123456789012.dkr.ecr.us-east-1.amazonaws.com/app"))
	for i, after := range []time.Duration{0, tokenLasts - time.Second, time.Second} {
		clock = clock.Add(after)
		if _, err := p.Login(t.Context(), n); err != nil || c.tokens != []int{1, 1, 2}[i] {
			t.Errorf("after %s: %d tokens, %v", after, c.tokens, err)
		}
	}
	clock = clock.Add(tokenLasts)
	c.fails["ecr"] = answer{400, "AccessDeniedException", "User: x is not authorized to perform: ecr:GetAuthorizationToken"}
	_, err := p.Login(t.Context(), n)
	tells(t, err, fault.Denied, "ResourceInitializationError: unable to pull secrets or registry auth: unable to retrieve ecr registry auth: AccessDeniedException: User: x")
	delete(c.fails, "ecr")
	if _, err := p.Login(t.Context(), n); err != nil {
		t.Errorf("an error is kept: %v", err)
	}
}

// The monotonic clock stands still while a machine sleeps, and the one on the wall can
// be set: by neither is a login used that has ended.
func TestLogin_OfECREndsOnAMachineThatHasSleptOrWhoseClockWasSet(t *testing.T) {
	c, _, p := bench(t, Auth{})
	clock := time.Now()
	p.now = func() time.Time { return clock }
	n := need(imageOf("123456789012.dkr.ecr.us-east-1.amazonaws.com/app"))
	login := func(tokens int) {
		t.Helper()
		if _, err := p.Login(t.Context(), n); err != nil || c.tokens != tokens {
			t.Errorf("%d tokens, want %d: %v", c.tokens, tokens, err)
		}
	}
	login(1)
	for _, held := range p.tokens {
		if text := held.began.String() + held.until.String(); strings.Contains(text, "m=") {
			t.Errorf("a login lasts by the monotonic clock: %s", text)
		}
	}
	clock = clock.Round(0).Add(-time.Hour)
	login(2)
	login(2)
}

func TestLogin_ManyWhoAskAtOnceShareOne(t *testing.T) {
	c, _, p := bench(t, Auth{})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := p.Login(t.Context(), need(imageOf("123456789012.dkr.ecr.us-east-1.amazonaws.com/app"))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if c.tokens != 1 {
		t.Errorf("%d tokens", c.tokens)
	}
}

func TestLogin_OfTheDefinitionComesFirst(t *testing.T) {
	auth, err := ParseAuth(AuthDocker, `{"reg.example.com":{"username":"settings","password":"x"}}`)
	if err != nil {
		t.Fatal(err)
	}
	c, _, p := bench(t, auth)
	c.secrets[secretARN] = `{"username":"ann","password":"` + canary + `","email":"x"}`
	c.secrets["by-name"] = `{"username":"bob","password":"` + canary + `"}`
	for _, image := range []string{"reg.example.com/app", "123456789012.dkr.ecr.us-east-1.amazonaws.com/app"} {
		d := imageOf(image)
		for name, user := range map[string]string{secretARN: "ann", "by-name": "bob"} {
			d.RepositoryCredentials = &taskdef.RepositoryCredentials{CredentialsParameter: name}
			if login, err := p.Login(t.Context(), need(d)); err != nil || login != (agent.Login{Username: user, Password: canary}) {
				t.Errorf("%s with %s: %q, %v", image, name, login.Username, err)
			}
		}
	}
	if login, err := p.Login(t.Context(), need(imageOf("reg.example.com/app"))); err != nil || login.Username != "settings" {
		t.Errorf("of the settings: %q, %v", login.Username, err)
	}
	if login, err := p.Login(t.Context(), need(imageOf("busybox"))); err != nil || login != (agent.Login{}) {
		t.Errorf("of nobody: %q, %v", login.Username, err)
	}
	d := imageOf("reg.example.com/app")
	d.RepositoryCredentials = &taskdef.RepositoryCredentials{CredentialsParameter: secretARN}
	for _, held := range []string{canary, `{"username":"` + canary + `"}`, `{"password":"` + canary + `"}`, `["` + canary + `"]`} {
		c.secrets[secretARN] = held
		_, err := p.Login(t.Context(), need(d))
		tells(t, err, fault.Invalid, "ResourceInitializationError: unable to pull secrets or registry auth: ", secretARN, `"username" and "password"`)
	}
	n := need(d)
	n.ExecutionRole = ""
	_, err = p.Login(t.Context(), n)
	tells(t, err, fault.Invalid, "executionRoleArn")
}

func TestParseAuth_ReadsBothFormsOfECS(t *testing.T) {
	token := base64.StdEncoding.EncodeToString([]byte("ann:pa:ss"))
	for _, c := range []struct{ kind, data string }{
		{AuthDockercfg, fmt.Sprintf(`{"https://index.docker.io/v1/":{"auth":%q,"email":"a@example.com"},"reg.example.com":{"auth":%q},"http://reg.example.com:5000/team":{"auth":%q}}`, token, token, token)},
		{AuthDocker, `{"https://index.docker.io/v1/":{"username":"ann","password":"pa:ss","email":"a@example.com"},"reg.example.com/":{"username":"ann","password":"pa:ss"},"reg.example.com:5000/team":{"username":"ann","password":"pa:ss"}}`},
	} {
		auth, err := ParseAuth(c.kind, c.data)
		if err != nil {
			t.Errorf("%s: %v", c.kind, err)
			continue
		}
		for image, known := range map[string]bool{
			"busybox": true, "ann/app": true, "reg.example.com/x": true, "reg.example.com:5000/team/x": true,
			"reg.example.com:5000/teammate": false, "reg.example.com:5001/x": false, "other.example.com/x": false, "reg.example.com.evil.example/x": false,
		} {
			host, path := hostOf(image)
			want := agent.Login{}
			if known {
				want = agent.Login{Username: "ann", Password: "pa:ss"}
			}
			if got := find(auth.logins, host+"/"+path); got != want {
				t.Errorf("%s: %s has %q", c.kind, image, got.Username)
			}
		}
	}
	auth, err := ParseAuth(AuthDocker, `{"reg.example.com":{"username":"all","password":"x"},"reg.example.com/team":{"username":"team","password":"x"}}`)
	if got := find(auth.logins, "reg.example.com/team/app:1").Username; err != nil || got != "team" {
		t.Errorf("the longest prefix: %q, %v", got, err)
	}
}

func TestParseAuth_FaultsNameTheRegistryAndNoPassword(t *testing.T) {
	for _, c := range []struct{ kind, data, want string }{
		{"", `{}`, "the type must be one of dockercfg, docker"},
		{"basic", canary, "the type must be one of dockercfg, docker"},
		{AuthDocker, canary, "JSON object"},
		{AuthDocker, "null", "JSON object"},
		{AuthDocker, "", "JSON object"},
		{AuthDocker, `{"r":{"username":"` + canary + `"}}`, `the data of registry "r" must have "username" and "password"`},
		{AuthDockercfg, `{"r":{"auth":"` + canary + `!"}}`, `the data of registry "r" must have "auth"`},
		{AuthDockercfg, `{"auths":{"r":{"auth":"YTpi"}}}`, `the data of registry "auths" must have "auth"`},
		{AuthDocker, `{"https://":{"username":"` + canary + `","password":"x"}}`, "without a host"},
	} {
		_, err := ParseAuth(c.kind, c.data)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s %s: %v, want %s", c.kind, c.data, err, c.want)
		}
	}
}

func FuzzParseAuth(f *testing.F) {
	f.Fuzz(func(t *testing.T, kind, data string) {
		auth, err := ParseAuth(kind, data)
		if err != nil {
			if len(err.Error()) > 600 || len(auth.logins) > 0 {
				t.Errorf("%d logins with %v", len(auth.logins), err)
			}
			return
		}
		for _, l := range auth.logins {
			if l.prefix == "" || l.login.Username == "" || l.login.Password == "" || find(auth.logins, l.prefix) == (agent.Login{}) {
				t.Errorf("a login without its parts for %q", l.prefix)
			}
		}
	})
}
