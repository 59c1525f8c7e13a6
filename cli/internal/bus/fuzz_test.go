package bus_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/cli/internal/bus"
)

// FuzzLine: any event is shown in one line that moves no terminal's cursor.
func FuzzLine(f *testing.F) {
	for _, s := range []string{
		`{"id":"1","detail-type":"ECS Task State Change","time":"2026-01-02T03:04:05Z","resources":["arn:aws:ecs:r:0:task/default/1"],"detail":{"taskArn":"arn:aws:ecs:r:0:task/default/1","lastStatus":"STOPPED","stoppedReason":"x"}}`,
		`{"detail-type":"ECS Service Action","resources":["a/b/c"],"detail":{"eventName":"SERVICE_STEADY_STATE"}}`, `{"detail":[]}`, `{"detail":{"taskArn":1,"reason":"\u001b[2J\nx"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var e bus.Event
		if json.Unmarshal(text, &e) != nil {
			return
		}
		line := bus.Line(e)
		if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }) {
			t.Fatalf("%q", line)
		}
	})
}
