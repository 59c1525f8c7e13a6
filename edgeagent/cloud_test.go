package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/longshore-run/longshore/internal/transport"
	"github.com/longshore-run/longshore/shared/setting"
)

// names is an STS that answers with identity, or not at all while it is empty.
func names(t *testing.T) (*cloud, *atomic.Value) {
	var identity atomic.Value
	identity.Store("")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if identity.Load() == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><UserId>%s</UserId><Account>1</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`, identity.Load())
	}))
	t.Cleanup(server.Close)
	return &cloud{names: sts.New(sts.Options{
		Region: "eu-west-1", BaseEndpoint: &server.URL, Retryer: aws.NopRetryer{}, HTTPClient: transport.Client{HTTP: http.DefaultClient}, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	})}, &identity
}

func TestNewCloud_SpeaksToAWSWithTheSettingsAMachineHas(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><UserId>role:i-1</UserId><Account>1</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`)
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{"AWS_CA_BUNDLE": "", "AWS_ENDPOINT_URL": server.URL, "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"} {
		t.Setenv(name, value)
	}
	c, err := newCloud(t.Context(), settings{lookup: os.LookupEnv}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.ask(t.Context()); err != nil || got != "role:i-1" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestWhoAmI_GoesByTheLastIdentityWhileSTSIsSilent(t *testing.T) {
	c, identity := names(t)
	log, dir := slog.New(slog.DiscardHandler), filepath.Join(t.TempDir(), "data")
	identity.Store("role:i-1")
	for range 2 {
		if got, err := c.whoAmI(t.Context(), dir, log); err != nil || got != "role:i-1" {
			t.Fatalf("%q, %v", got, err)
		}
		identity.Store("")
	}
	info, err := os.Stat(filepath.Join(dir, identityName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	identity.Store("role:i-2")
	for range 2 {
		if got, err := c.whoAmI(t.Context(), dir, log); err != nil || got != "role:i-2" {
			t.Fatalf("%q, %v", got, err)
		}
		identity.Store("")
	}
}

func TestWhoAmI_AsksUntilItIsToldForTheFirstTime(t *testing.T) {
	c, identity := names(t)
	stop := make(chan string)
	go func() {
		got, _ := c.whoAmI(t.Context(), t.TempDir(), slog.New(slog.DiscardHandler))
		stop <- got
	}()
	identity.Store("role:i-3")
	if got := <-stop; got != "role:i-3" {
		t.Errorf("%q", got)
	}
}

func TestRegionOf_ReadsAQueuesURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://sqs.eu-west-1.amazonaws.com/1/q":     "eu-west-1",
		"https://sqs.cn-north-1.amazonaws.com.cn/1/q": "cn-north-1",
		"http://127.0.0.1:4566/000000000000/q":        "",
		"://":                                         "",
	} {
		if got := regionOf(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestFillIn_ASessionOfEC2IsNamedAfterItsInstance(t *testing.T) {
	for identity, want := range map[string]string{"AROA1:i-0123456789abcdef0": "i-0123456789abcdef0", "AROA1:mi-0123456789abcdef0": "", "AIDA1": ""} {
		var s setting.Agent
		new(cloud).fillIn(t.Context(), &s, identity, slog.New(slog.DiscardHandler))
		if s.EC2InstanceID != want {
			t.Errorf("%s: %q, want %q", identity, s.EC2InstanceID, want)
		}
	}
}

func TestProber_NamesThePortsThatSomethingHas(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	port, other := tcp.Addr().(*net.TCPAddr).Port, udp.LocalAddr().(*net.UDPAddr).Port
	probe := prober("unix:///var/run/docker.sock")
	// A port that was free a moment ago may be somebody's by now, but not one time after the other.
	var gotTCP, gotUDP []int
	for range 10 {
		none := freePort(t)
		for range 2 { // and looking takes nothing
			gotTCP, gotUDP = probe([]int{none, port}, []int{other})
			if slices.Contains(gotTCP, none) {
				break
			}
		}
		if !slices.Contains(gotTCP, none) {
			break
		}
	}
	if !slices.Equal(gotTCP, []int{port}) || !slices.Equal(gotUDP, []int{other}) {
		t.Errorf("taken are tcp %v and udp %v, want %d and %d", gotTCP, gotUDP, port, other)
	}
	if prober("tcp://elsewhere:2375") != nil {
		t.Error("the ports of another host are judged by this one's")
	}
}

// freePort is one that nothing had a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestHostOf_IsAskedOnlyWhereThereIsOneAndSomebodyWantsToKnow(t *testing.T) {
	t.Setenv("AWS_CA_BUNDLE", "")
	of := func(disabled, instance string, notices ...string) bool {
		t.Helper()
		s := settings{lookup: func(name string) (string, bool) {
			return disabled, name == "AWS_EC2_METADATA_DISABLED" && disabled != ""
		}}
		s.ReportsQueueURL = "https://sqs.eu-west-1.amazonaws.com/1/q"
		s.EC2InstanceID, s.Notices = instance, notices
		c, err := newCloud(t.Context(), s, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return c.hostOf(s) != nil
	}
	if !of("", "i-0123456789abcdef0", "spot", "autoscaling") {
		t.Error("an EC2 instance is not asked")
	}
	if of("", "", "spot") || of("true", "i-0123456789abcdef0", "spot") || of("", "i-0123456789abcdef0", "none") {
		t.Error("asked where there is nobody to ask, or nobody to know")
	}
}
