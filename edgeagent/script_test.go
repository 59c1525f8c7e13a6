package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"longshore-agent": main})
}

func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			// A leftover of whoever runs the tests must not decide them.
			for _, name := range []string{"DOCKER_HOST", "LONGSHORE_CLUSTER"} {
				if _, set := os.LookupEnv(name); set {
					env.Setenv(name, "")
				}
			}
			return nil
		},
	})
}
