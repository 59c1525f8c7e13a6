package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/smithy-go"

	"github.com/longshore-run/longshore/cli/internal/sigv4"
)

const maxAnswer = 1 << 20

// Fence says that an instance's host is off. The answer is the instance as the
// API shows it.
func (c *Client) Fence(ctx context.Context, cluster, instance string) (json.RawMessage, error) {
	var out struct {
		ContainerInstance json.RawMessage `json:"containerInstance"`
	}
	err := c.extend(ctx, "FenceContainerInstance", map[string]any{"cluster": cluster, "containerInstance": instance, "confirmedOff": true}, &out)
	return out.ContainerInstance, err
}

// extend calls an operation that ECS does not have (docs/adr/0010).
func (c *Client) extend(ctx context.Context, operation string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("write %s: %w", operation, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Endpoint, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("call %s: %w", operation, err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "Longshore."+operation)
	if err := sigv4.Sign(ctx, c.AWS.Credentials, r, body, c.AWS.Region, c.now()); err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("call %s: %w", operation, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the answer to %s: %w", operation, err)
	}
	if answer.StatusCode != http.StatusOK {
		return refusal(answer.StatusCode, text)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("read the answer to %s: %w", operation, err)
	}
	return nil
}

// refusal is an answer of the API, or of what stands before it, as an error.
func refusal(status int, text []byte) error {
	var x struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(text, &x); err != nil || x.Type == "" && x.Message == "" {
		if status == http.StatusForbidden {
			return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "the request was refused (403)"}
		}
		return errors.New(http.StatusText(status))
	}
	if x.Type == "" && status == http.StatusForbidden {
		x.Type = "AccessDeniedException"
	}
	return &smithy.GenericAPIError{Code: x.Type, Message: x.Message}
}
