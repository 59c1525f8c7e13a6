package local

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

const stateFile = "stack.json"

// saved is what is kept of a stack for the next command.
type saved struct {
	Root, Endpoint, Image string
	Agents                int
	Outputs               Outputs
}

func (s *Stack) save() error {
	b, err := json.MarshalIndent(saved{s.Options.Root, s.Endpoint, s.Image, s.Options.Agents, s.Outputs}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Options.Dir, stateFile), b, 0o644)
}

// Open is the stack that is up in dir.
func Open(dir string) (*Stack, error) {
	b, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return nil, fmt.Errorf("no local stack is up in %s; bring one up with: make local-up", dir)
	}
	var v saved
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, stateFile), err)
	}
	o := Options{Root: v.Root, Dir: dir, Agents: v.Agents}.withDefaults()
	return &Stack{Options: o, Endpoint: v.Endpoint, Image: v.Image, Outputs: v.Outputs, begun: time.Now()}, nil
}

// Tick runs the reaper now and waits for its end.
func (s *Stack) Tick(ctx context.Context) error {
	_, err := s.invoke(ctx, "Reaper", `{"source":"longshore.tick"}`)
	return err
}

// Audit recomputes every ledger now, and returns the audit's answer: JSON, with
// the differences it found.
func (s *Stack) Audit(ctx context.Context) ([]byte, error) { return s.invoke(ctx, "Audit", "{}") }

// invoke calls a function by its name in the outputs and waits for its end.
// TellReaper gives the reaper an event as a rule does; of EC2's own no emulator
// takes any.
func (s *Stack) TellReaper(ctx context.Context, event string) error {
	_, err := s.invoke(ctx, "Reaper", event)
	return err
}

func (s *Stack) invoke(ctx context.Context, name, payload string) ([]byte, error) {
	out, err := lambda.NewFromConfig(s.Config()).Invoke(ctx, &lambda.InvokeInput{
		FunctionName: aws.String(s.Outputs[name+"FunctionName"]), Payload: []byte(payload),
	})
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", name, err)
	}
	if out.FunctionError != nil {
		return nil, fmt.Errorf("run %s: %s: %s", name, *out.FunctionError, out.Payload)
	}
	return out.Payload, nil
}
