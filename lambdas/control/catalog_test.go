package control_test

import (
	"testing"

	"github.com/longshore-run/longshore/shared/taskdef"
)

func decode(t *testing.T, body string) taskdef.Input {
	t.Helper()
	in, err := taskdef.Decode([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return in
}
