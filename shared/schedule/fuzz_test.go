package schedule_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/schedule"
)

const message = `{"scheduledTime":"2026-01-02T03:00:00Z","run":{"version":1,"schedule":"nightly","cluster":"default","taskDefinition":"report:3","count":2,` +
	`"overrides":{"cpu":"256"},"group":"g","tags":{"a":"<b>"},"propagateTags":true,"startingDeadline":600,"overlap":"forbid"}}`

// FuzzDecode: what is read as a run's message goes into a rule's template and comes
// back the same; anything else is refused in few words.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(message))
	f.Add([]byte(strings.Replace(message, `"forbid"`, `"never"`, 1)))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := schedule.Decode(body)
		if err != nil {
			if n := len(err.Error()); n == 0 || n > 2048 {
				t.Fatalf("the error has %d bytes", n)
			}
			return
		}
		again, err := schedule.DecodeTemplate(d.Run.Template())
		if err != nil {
			if len(d.Run.Template()) > 8192 { // EventBridge takes no such template, and Check says so
				return
			}
			t.Fatalf("its template can not be read: %v\n%s", err, d.Run.Template())
		}
		if again.Template() != d.Run.Template() {
			t.Fatalf("%s\nis read as\n%s", d.Run.Template(), again.Template())
		}
	})
}

// FuzzDecodeTemplate: what anybody wrote into a rule's target is a run that passes
// its check, or an error.
func FuzzDecodeTemplate(f *testing.F) {
	f.Add(strings.Replace(message, `"2026-01-02T03:00:00Z"`, "<time>", 1))
	f.Add("<time>")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := schedule.DecodeTemplate(text)
		if err == nil {
			err = r.Check()
		}
		if err != nil {
			return
		}
		if again, err := schedule.DecodeTemplate(r.Template()); err != nil || !maps.Equal(again.Tags, r.Tags) {
			t.Fatalf("%+v is read back as %+v, %v", r, again, err)
		}
	})
}

// FuzzCheckExpression: an expression is one of EventBridge's two forms, with no
// space too many, or the error names it.
func FuzzCheckExpression(f *testing.F) {
	for _, e := range []string{"rate(1 minute)", "rate(2 day)", "cron(0 3 * * ? *)", "cron(0 3 ? * MON-FRI 2027)", "cron()", "rate(99999999999999999999 days)"} {
		f.Add(e)
	}
	f.Fuzz(func(t *testing.T, text string) {
		err := schedule.CheckExpression(text)
		if err == nil {
			if !strings.HasPrefix(text, "rate(") && !strings.HasPrefix(text, "cron(") || !strings.HasSuffix(text, ")") || strings.ContainsAny(text, "\n\t") || strings.Contains(text, "  ") {
				t.Fatalf("%q is taken", text)
			}
			return
		}
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Field != "expression" || len(err.Error()) > 1024 {
			t.Fatalf("the error is %T, %d bytes", err, len(err.Error()))
		}
	})
}
