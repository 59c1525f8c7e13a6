package emulator_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/test/emulator"
)

// sts answers GetCallerIdentity for one account, and counts what it is asked.
func sts(t *testing.T, account string) (url string, asked *int) {
	t.Helper()
	asked = new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*asked++
		fmt.Fprintf(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Account>%s</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`, account)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func credentials(t *testing.T, product emulator.Product) {
	t.Helper()
	for name, value := range map[string]string{
		emulator.ProductVariable: string(product), "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "eu-central-1",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_CA_BUNDLE": "",
	} {
		t.Setenv(name, value)
	}
}

func TestStart_AnEndpointOfSomebodyElseIsUsedAndLeftAlone(t *testing.T) {
	credentials(t, emulator.Endpoint)
	url, asked := sts(t, "1")
	t.Setenv(emulator.EndpointVariable, url+"/")
	p, err := emulator.Start(t.Context(), emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c := p.AWSConfig(); p.Endpoint() != url || *c.BaseEndpoint != url || c.Region != "eu-central-1" {
		t.Errorf("endpoint %s, configuration %v in %s", p.Endpoint(), *c.BaseEndpoint, c.Region)
	}
	if err := p.Stop(t.Context()); err != nil || *asked != 0 {
		t.Errorf("stopping: %v, asked %d times", err, *asked)
	}
}

func TestStart_AnEndpointHasToBeAnEmulators(t *testing.T) {
	for _, bad := range []string{"", "localhost:4566", "https://sqs.eu-central-1.amazonaws.com"} {
		credentials(t, emulator.Endpoint)
		t.Setenv(emulator.EndpointVariable, bad)
		if _, err := emulator.Start(t.Context(), emulator.Options{}); err == nil || !strings.Contains(err.Error(), "http://localhost:4566") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestStart_ARealAccountIsUsedOnlyIfItWasNamed(t *testing.T) {
	for _, c := range []struct{ named, is, says string }{
		{"", "111122223333", "name the account in LONGSHORE_AWS_ACCOUNT"},
		{"444455556666", "111122223333", "of account 111122223333, and LONGSHORE_AWS_ACCOUNT names 444455556666"},
		{"111122223333", "111122223333", ""},
	} {
		credentials(t, emulator.AWS)
		url, asked := sts(t, c.is)
		t.Setenv("AWS_ENDPOINT_URL_STS", url)
		t.Setenv(emulator.AccountVariable, c.named)
		p, err := emulator.Start(t.Context(), emulator.Options{})
		if c.says == "" && (err != nil || p.AWSConfig().BaseEndpoint != nil || *asked != 1) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("named %q: %v, asked %d times", c.named, err, *asked)
		}
		if c.says == "" && p.QueueURL("q") != "https://sqs.eu-central-1.amazonaws.com/111122223333/q" {
			t.Errorf("a queue is at %s", p.QueueURL("q"))
		}
	}
}
