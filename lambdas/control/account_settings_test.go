package control_test

import (
	"context"
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
)

const (
	alice = "arn:aws:iam::123456789012:user/alice"
	bob   = "arn:aws:iam::123456789012:role/bob"
	bobs  = "arn:aws:sts::123456789012:assumed-role/bob/session-1"
	root  = "arn:aws:iam::123456789012:root"
)

// inEffect is the effective value of a setting for a caller.
func (r *apiRig) inEffect(caller, name string) string {
	r.t.Helper()
	found, _, err := r.ListAccountSettings(context.Background(), control.SettingFilter{Caller: caller, Name: name, Effective: true}, "", 10)
	if err != nil || len(found) != 1 {
		r.t.Fatalf("%s of %s: %v, %v", name, caller, found, err)
	}
	return found[0].Value
}

func TestAccountSettings_OnesOwnWinsOverTheDefaultAndThatOverECSs(t *testing.T) {
	r := newAPIRig(t)
	ctx := context.Background()
	const name = "containerInsights"
	steps := []struct {
		do         func() (control.Setting, error)
		alice, bob string
	}{
		{func() (control.Setting, error) { return control.Setting{}, nil }, "disabled", "disabled"},
		{func() (control.Setting, error) { return r.PutAccountSettingDefault(ctx, name, "enabled") }, "enabled", "enabled"},
		{func() (control.Setting, error) { return r.PutAccountSetting(ctx, alice, "", name, "enhanced") }, "enhanced", "enabled"},
		{func() (control.Setting, error) { return r.PutAccountSetting(ctx, root, bob, name, "disabled") }, "enhanced", "disabled"},
		{func() (control.Setting, error) { return r.DeleteAccountSetting(ctx, alice, alice, name) }, "enabled", "disabled"},
		{func() (control.Setting, error) { return r.DeleteAccountSetting(ctx, bobs, "", name) }, "enabled", "enabled"},
		{func() (control.Setting, error) { return r.DeleteAccountSetting(ctx, root, "", name) }, "disabled", "disabled"},
	}
	for i, s := range steps {
		if _, err := s.do(); err != nil {
			t.Fatal(err)
		}
		if a, b := r.inEffect(alice, name), r.inEffect(bobs, name); a != s.alice || b != s.bob {
			t.Errorf("step %d: alice has %s and bob %s, want %s and %s", i, a, b, s.alice, s.bob)
		}
	}
}

func TestAccountSettings_WithoutEffectiveOnlyWhatOneSetIsListed(t *testing.T) {
	r := newAPIRig(t)
	ctx := context.Background()
	if _, err := r.PutAccountSettingDefault(ctx, "taskLongArnFormat", "enabled"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.PutAccountSetting(ctx, alice, "", "containerInsights", "enabled"); err != nil {
		t.Fatal(err)
	}
	found, next, err := r.ListAccountSettings(ctx, control.SettingFilter{Caller: alice}, "", 10)
	if err != nil || next != "" || len(found) != 1 || found[0] != (control.Setting{Name: "containerInsights", Value: "enabled", Principal: alice}) {
		t.Errorf("found %v, %q, %v", found, next, err)
	}
	var names []string
	for after := ""; ; {
		found, next, err := r.ListAccountSettings(ctx, control.SettingFilter{Caller: alice, Effective: true}, after, 1)
		if err != nil || len(found) != 1 {
			t.Fatalf("after %q: %v, %v", after, found, err)
		}
		names = append(names, found[0].Name)
		if after = next; next == "" {
			break
		}
	}
	if len(names) != len(control.SettingNames()) {
		t.Errorf("page by page these are listed: %v", names)
	}
}

func TestAccountSettings_RefuseWhatWouldBeForShow(t *testing.T) {
	r := newAPIRig(t)
	ctx := context.Background()
	for name, value := range map[string]string{
		"serviceLongArnFormat": "disabled", "awsvpcTrunking": "enabled", "tagResourceAuthorization": "on", "guardDutyActivate": "on",
		"defaultLogDriverMode": "non-blocking", "fargateTaskRetirementWaitPeriod": "8", "containerInsights": "maybe", "dualStackIPv6": "enabled",
	} {
		_, err := r.PutAccountSetting(ctx, alice, "", name, value)
		wantCode(t, err, "InvalidParameterException")
		_, err = r.PutAccountSettingDefault(ctx, name, value)
		wantCode(t, err, "InvalidParameterException")
	}
	_, err := r.PutAccountSetting(ctx, alice, bob, "containerInsights", "enabled")
	if err == nil {
		t.Error("alice sets bob's settings")
	}
	_, err = r.PutAccountSetting(ctx, root, "bob", "containerInsights", "enabled")
	wantCode(t, err, "InvalidParameterException")
}
