package setting_test

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/shared/setting"
)

// FuzzFromEnv: settings that are read are written so that they are read the same;
// an error names one of the variables on each of its lines.
func FuzzFromEnv(f *testing.F) {
	for _, text := range []string{
		"LONGSHORE_HEARTBEAT_EVERY=5s\nLONGSHORE_LOG_LEVEL=debug", "LONGSHORE_REGISTER_ROLES= a ,, b", "LONGSHORE_REAP_AFTER=-1h",
		"LONGSHORE_RESERVED_PORTS=22, 80,x", "LONGSHORE_CPU=9223372036854775808", "LONGSHORE_SENDER_FROM_BODY=T",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		env := map[string]string{}
		for line := range strings.SplitSeq(text, "\n") {
			name, value, _ := strings.Cut(line, "=")
			env[name] = value
		}
		for _, s := range []any{&setting.Control{}, &setting.Agent{}} {
			readTwice(t, s, env)
		}
	})
}

func readTwice(t *testing.T, s any, given map[string]string) {
	env := maps.Clone(given)
	names := setting.Names(s)
	for _, name := range names { // what must be set is
		if strings.HasSuffix(name, "_URL") || strings.HasSuffix(name, "_TABLE") || name == "LONGSHORE_REGION" || name == "LONGSHORE_ACCOUNT" {
			if env[name] == "" {
				env[name] = "x"
			}
		}
	}
	if err := setting.FromEnv(s, lookup(env)); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !strings.HasPrefix(line, "LONGSHORE_") && !strings.HasPrefix(line, "DOCKER_HOST") {
				t.Fatalf("an error that names no variable: %q", line)
			}
		}
		return
	}
	again := reflect.New(reflect.TypeOf(s).Elem()).Interface()
	if err := setting.FromEnv(again, lookup(setting.Env(s))); err != nil || !reflect.DeepEqual(s, again) {
		t.Fatalf("%+v\nis written as %v and read as\n%+v, %v", s, setting.Env(s), again, err)
	}
}
