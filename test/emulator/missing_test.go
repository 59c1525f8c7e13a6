package emulator_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/test/emulator"
)

func TestStart_MissingEmulatorSaysWhatMendsIt(t *testing.T) {
	_, err := emulator.Start(t.Context(), emulator.Options{Root: t.TempDir()})
	if !errors.Is(err, emulator.ErrMissing) || !strings.Contains(err.Error(), "make tools") {
		t.Fatalf("error is %v", err)
	}
}
