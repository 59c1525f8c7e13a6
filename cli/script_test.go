package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"longshore": main})
}

func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			// What is left of whoever runs the tests must not decide them.
			for _, name := range []string{"LONGSHORE_ENDPOINT", "LONGSHORE_CLUSTER", "LONGSHORE_STACK", "AWS_PROFILE", "AWS_REGION", "AWS_CA_BUNDLE", "AWS_ENDPOINT_URL"} {
				env.Setenv(name, "")
			}
			env.Setenv("AWS_CONFIG_FILE", os.DevNull)
			env.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
			env.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			return nil
		},
	})
}
