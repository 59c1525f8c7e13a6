package setting_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/setting"
)

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

func TestEnv_IsTheInverseOfFromEnv(t *testing.T) {
	env := map[string]string{
		"LONGSHORE_REPORTS_QUEUE_URL":    "https://sqs/r",
		"LONGSHORE_HEARTBEATS_QUEUE_URL": "https://sqs/h",
		"LONGSHORE_RESERVED_PORTS":       "22,80",
		"LONGSHORE_CLEANUP_WAIT":         "1s",
		"LONGSHORE_GPUS":                 "gpu0,gpu1",
	}
	var a setting.Agent
	if err := setting.FromEnv(&a, lookup(env)); err != nil {
		t.Fatal(err)
	}
	if a.CleanupWait != time.Second || len(a.ReservedTCP) != 2 || a.Cluster != "default" {
		t.Fatalf("read %+v", a)
	}
	if got := setting.Env(a); !maps.Equal(got, env) {
		t.Fatalf("Env gave %v, want %v", got, env)
	}
}

func TestFromEnv_NamesEveryFaultAtOnce(t *testing.T) {
	var c setting.Control
	err := setting.FromEnv(&c, lookup(map[string]string{
		"LONGSHORE_HEARTBEAT_EVERY":  "0.1s",
		"LONGSHORE_REAP_AFTER":       "soon",
		"LONGSHORE_LOG_LEVEL":        "loud",
		"LONGSHORE_SENDER_FROM_BODY": "perhaps",
	}))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`LONGSHORE_HEARTBEAT_EVERY="0.1s": must be at least 1s`,
		`LONGSHORE_REAP_AFTER="soon": must be a duration such as 90s`,
		`LONGSHORE_LOG_LEVEL="loud": must be one of debug, info, warn, error`,
		`LONGSHORE_SENDER_FROM_BODY="perhaps": must be true or false`,
		`LONGSHORE_REGION must be set`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}

func TestFromEnv_DefaultsAreWithinTheirOwnBounds(t *testing.T) {
	need := map[string]string{}
	for _, n := range setting.Names(setting.Control{}) {
		if strings.HasSuffix(n, "_URL") || strings.HasSuffix(n, "_TABLE") || n == "LONGSHORE_REGION" || n == "LONGSHORE_ACCOUNT" {
			need[n] = "x"
		}
	}
	if err := setting.FromEnv(&setting.Control{}, lookup(need)); err != nil {
		t.Fatal(err)
	}
}

func TestShown_HidesSecretsAndFaultsDoNotTellThem(t *testing.T) {
	var s struct {
		Name string `env:"A_NAME"`
		Key  string `env:"A_KEY" secret:"true"`
		Size int    `env:"A_SIZE" secret:"true"`
	}
	values := map[string]string{"A_NAME": "n", "A_KEY": "canary", "A_SIZE": "canary"}
	err := setting.FromEnv(&s, func(name string) (string, bool) { v, ok := values[name]; return v, ok })
	if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "A_SIZE") {
		t.Errorf("%v", err)
	}
	if got := setting.Shown(s); got["A_NAME"] != "n" || got["A_KEY"] != "(hidden)" || setting.Env(s)["A_KEY"] != "canary" {
		t.Errorf("shown %v", got)
	}
}
