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
	out, err := lambda.NewFromConfig(s.Config()).Invoke(ctx, &lambda.InvokeInput{
		FunctionName: aws.String(s.Outputs["ReaperFunctionName"]), Payload: []byte(`{"source":"longshore.tick"}`),
	})
	if err != nil {
		return fmt.Errorf("run the reaper: %w", err)
	}
	if out.FunctionError != nil {
		return fmt.Errorf("run the reaper: %s: %s", *out.FunctionError, out.Payload)
	}
	return nil
}
