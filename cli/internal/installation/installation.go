// Package installation does to an installation as a whole what people who run it
// do: look at its queues, send dead letters again, audit the books, stop and start
// its functions, and bring its tables back from a backup. It asks AWS with the
// caller's rights, and decides nothing about tasks. The command's packages import it.
package installation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/longshore-run/longshore/cli/internal/exit"
)

// Installation is one of them.
type Installation struct {
	AWS     aws.Config
	Stack   string
	Outputs map[string]string
	Now     func() time.Time
}

// output is a stack's output, which a version that knows the command has.
func (in *Installation) output(name string) (string, error) {
	if v := in.Outputs[name]; v != "" {
		return v, nil
	}
	return "", exit.New(exit.NotFound, "is it a Longshore stack? deploy this version: make deploy", "stack %s has no output %s", in.Stack, name)
}

// ending are the outputs of one kind, by what stands before it.
func (in *Installation) ending(suffix string) (names []string) {
	for _, key := range slices.Sorted(maps.Keys(in.Outputs)) {
		if name, ok := strings.CutSuffix(key, suffix); ok {
			names = append(names, name)
		}
	}
	return names
}

// invoke calls a function of the stack and waits for its answer.
func (in *Installation) invoke(ctx context.Context, function string, payload, answer any) error {
	name, err := in.output(function + "FunctionName")
	if err != nil {
		return err
	}
	body, err := json.Marshal(payload)
	if err != nil {
		return fmt.Errorf("write the event for %s: %w", function, err)
	}
	out, err := lambda.NewFromConfig(in.AWS).Invoke(ctx, &lambda.InvokeInput{FunctionName: &name, Payload: body})
	if err != nil {
		return fmt.Errorf("call the function %s: %w", function, err)
	}
	if out.FunctionError != nil {
		return exit.New(exit.Failed, fmt.Sprintf("read its log: aws logs tail %s --since 10m", in.Outputs[function+"LogGroupName"]), "the function %s failed: %.400s", function, out.Payload)
	}
	if err := json.Unmarshal(out.Payload, answer); err != nil {
		return fmt.Errorf("read the answer of %s: %w", function, err)
	}
	return nil
}
