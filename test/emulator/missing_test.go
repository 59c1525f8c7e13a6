package emulator_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/test/emulator"
)

func TestStart_AnUnknownProductSaysWhichThereAre(t *testing.T) {
	t.Setenv(emulator.ProductVariable, "cloud")
	_, err := emulator.Start(t.Context(), emulator.Options{})
	if err == nil || err.Error() != `LONGSHORE_EMULATOR is "cloud"; ministack, localstack, endpoint and aws are allowed` {
		t.Fatalf("error is %v", err)
	}
}

func TestStart_MissingEmulatorSaysWhatMendsIt(t *testing.T) {
	_, err := emulator.Start(t.Context(), emulator.Options{Root: t.TempDir()})
	if !errors.Is(err, emulator.ErrMissing) || !strings.Contains(err.Error(), "make tools") {
		t.Fatalf("error is %v", err)
	}
}

func TestStart_MissingLocalStackSaysWhatMendsIt(t *testing.T) {
	_, err := emulator.Start(t.Context(), emulator.Options{Root: t.TempDir(), Product: emulator.LocalStack})
	if !errors.Is(err, emulator.ErrMissing) || !strings.Contains(err.Error(), "make tools-localstack") {
		t.Fatalf("error is %v", err)
	}
}
