package option_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/infra/option"
)

// FuzzRead: whatever cdk.json holds, a stack is made of options that hold, and an
// emulator's options of no stack that does not say it is local; a fault names its key.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{"longshore:local":true,"longshore:heartbeatEvery":"5s"}`, `{"longshore:senderFromBody":"true"}`, `{"longshore:schedules":[{"schedule":"a"}]}`,
		`{"longshore:name":"A","longshore:registerRoles":["*","AROA"]}`, `{"longshore:logDays":30.5,"longshore:nosuch":{}}`, `{"longshore:agentPolicies":[null,1]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var context map[string]any
		if json.Unmarshal(text, &context) != nil {
			return
		}
		o, err := option.Read(context, "amd64")
		if err != nil {
			if !strings.Contains(err.Error(), "longshore:") {
				t.Fatalf("a fault that names no key: %v", err)
			}
			return
		}
		if o.Control.SenderFromBody && !o.Local {
			t.Fatal("senders are believed by what they say")
		}
		if o.Control.SuspectAfter <= o.Control.HeartbeatEvery || o.Control.ReapAfter <= o.Control.SuspectAfter || o.Name == "" || strings.ToLower(o.Name)+"-cmd-" != o.CommandQueueStart() {
			t.Fatalf("%+v", o)
		}
	})
}
