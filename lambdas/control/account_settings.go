package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/shared/fault"
)

// DefaultPrincipal is who has the settings of all who have none of their own: ECS's root user.
const DefaultPrincipal = "root"

// Setting is an account setting as it is shown.
type Setting struct {
	Name, Value, Principal string
	Managed                bool // nobody here can change it
}

// settingRule is what an account setting may be here. ECS's others are refused
// with the reason, not stored for show.
type settingRule struct {
	standard string   // in effect where nobody set it
	allowed  []string // none: it can not be set
	why      string   // why ECS's other values are refused
}

const insightsSetting = "containerInsights"

var (
	onOff        = []string{"enabled", "disabled"}
	longARNs     = settingRule{"enabled", []string{"enabled"}, "all ARNs have the long form"}
	noInterfaces = settingRule{"disabled", []string{"disabled"}, "tasks have no network interfaces of their own"}
	ofFargate    = func(standard string, values ...string) settingRule { return settingRule{standard, values, ""} }
)

// settingRules is every account setting that ECS has.
var settingRules = map[string]settingRule{
	"serviceLongArnFormat":            longARNs,
	"taskLongArnFormat":               longARNs,
	"containerInstanceLongArnFormat":  longARNs,
	"awsvpcTrunking":                  noInterfaces,
	insightsSetting:                   {"disabled", []string{"enabled", "disabled", "enhanced"}, ""}, // of clusters created from then on
	"fargateFIPSMode":                 ofFargate("disabled", onOff...),
	"fargateTaskRetirementWaitPeriod": ofFargate("7", "0", "7", "14"),
	"fargateEventWindows":             ofFargate("disabled", onOff...),
	"tagResourceAuthorization":        {"off", []string{"off"}, "who may call RunTask may tag what it makes"},
	"guardDutyActivate":               {"off", nil, "it is managed by AWS"},
	"defaultLogDriverMode":            {"blocking", []string{"blocking"}, "a container's log blocks unless the options of its logConfiguration say mode=non-blocking"},
}

var (
	principalForm = regexp.MustCompile(`^arn:[a-z-]+:iam::[0-9]{12}:(root|(user|role)/[\x21-\x7e]{1,512})$`)
	sessionForm   = regexp.MustCompile(`^(arn:[a-z-]+):sts::([0-9]{12}):assumed-role/([^/]+)/.+$`)
)

// SettingNames lists the account settings there are, sorted.
func SettingNames() []string { return slices.Sorted(maps.Keys(settingRules)) }

// Principal is whose settings a caller's are: those of the role, not of a session
// of it. Who is not known has the default ones.
func Principal(caller string) string {
	if m := sessionForm.FindStringSubmatch(caller); m != nil {
		return m[1] + ":iam::" + m[2] + ":role/" + m[3]
	}
	if !principalForm.MatchString(caller) || strings.HasSuffix(caller, ":root") {
		return DefaultPrincipal
	}
	return caller
}

// principal is whose settings a call is about: the caller's own, or those of
// whom it names, which only the root user may if it is somebody else.
func (c *Control) principal(caller, named string) (string, error) {
	own := Principal(caller)
	if named == "" {
		return own, nil
	}
	if !principalForm.MatchString(named) {
		return "", invalid("principalArn", "is %.200q; the ARN of a user, a role or the root user is allowed", named)
	}
	other := Principal(named)
	if other != own && own != DefaultPrincipal {
		return "", fault.New(fault.Denied, "principalArn: only the root user may see and set the account settings of others")
	}
	return other, nil
}

func (c *Control) showSetting(name, value, principal string) Setting {
	s := Setting{Name: name, Value: value, Principal: principal, Managed: len(settingRules[name].allowed) == 0}
	if principal == DefaultPrincipal {
		s.Principal = fmt.Sprintf("arn:%s:iam::%s:root", c.Setting.Partition, c.Setting.Account)
	}
	return s
}

// checkSetting judges a value.
func checkSetting(name, value string) error {
	rule, known := settingRules[name]
	switch {
	case !known:
		return invalid("name", "is %.60q; allowed: %s", name, strings.Join(SettingNames(), ", "))
	case len(rule.allowed) == 0:
		return invalid("name", "%s can not be set: %s", name, rule.why)
	case slices.Contains(rule.allowed, value):
		return nil
	case rule.why != "":
		return invalid("value", "is %.60q; %s may only be %s: %s", value, name, strings.Join(rule.allowed, " or "), rule.why)
	}
	return invalid("value", "is %.60q; of %s allowed: %s", value, name, strings.Join(rule.allowed, ", "))
}

// PutAccountSetting sets an account setting of a principal; one named
// DefaultPrincipal is that of everybody who has none.
func (c *Control) PutAccountSetting(ctx context.Context, caller, named, name, value string) (Setting, error) {
	principal, err := c.principal(caller, named)
	if err != nil {
		return Setting{}, err
	}
	return c.putSetting(ctx, principal, name, value)
}

// PutAccountSettingDefault sets what is in effect for all who have not set it.
func (c *Control) PutAccountSettingDefault(ctx context.Context, name, value string) (Setting, error) {
	return c.putSetting(ctx, DefaultPrincipal, name, value)
}

func (c *Control) putSetting(ctx context.Context, principal, name, value string) (Setting, error) {
	if err := checkSetting(name, value); err != nil {
		return Setting{}, err
	}
	s := &Settings{Principal: principal}
	err := c.decide(ctx, "put account setting "+name, func() ([]Write, error) {
		if err := c.Store.Load(ctx, s); err != nil {
			return nil, err
		}
		if s.Values[name] == value {
			return nil, errGiveUp
		}
		if s.Values == nil {
			s.Values = map[string]string{}
		}
		s.Values[name] = value
		return []Write{Put(s)}, nil
	})
	return c.showSetting(name, value, principal), err
}

// DeleteAccountSetting takes a principal's own setting away; the answer is what
// is in effect for it then.
func (c *Control) DeleteAccountSetting(ctx context.Context, caller, named, name string) (Setting, error) {
	principal, err := c.principal(caller, named)
	if err != nil {
		return Setting{}, err
	}
	if rule, known := settingRules[name]; !known || len(rule.allowed) == 0 {
		return Setting{}, checkSetting(name, "")
	}
	s := &Settings{Principal: principal}
	err = c.decide(ctx, "delete account setting "+name, func() ([]Write, error) {
		if err := c.Store.Load(ctx, s); err != nil {
			return nil, err
		}
		if _, set := s.Values[name]; !set {
			return nil, errGiveUp
		}
		delete(s.Values, name)
		return []Write{Put(s)}, nil
	})
	if err != nil {
		return Setting{}, err
	}
	value, err := c.effective(ctx, principal, name)
	return c.showSetting(name, value, principal), err
}

// InsightsSetting is the account setting that clusters get where their creator
// says nothing of it.
func (c *Control) InsightsSetting(ctx context.Context, caller string) (string, error) {
	return c.effective(ctx, Principal(caller), insightsSetting)
}

// effective is the value of a setting that is in effect for a principal.
func (c *Control) effective(ctx context.Context, principal, name string) (string, error) {
	own, all := &Settings{Principal: principal}, &Settings{Principal: DefaultPrincipal}
	if err := c.Store.Load(ctx, own, all); err != nil {
		return "", fmt.Errorf("read account settings: %w", err)
	}
	return cmp.Or(own.Values[name], all.Values[name], settingRules[name].standard), nil
}

// SettingFilter is what ListAccountSettings lists; empty members filter nothing.
type SettingFilter struct {
	Caller, Principal string
	Name, Value       string
	// Effective lists what is in effect for the principal, set by it or not.
	Effective bool
}

// ListAccountSettings lists account settings by name. There are few: after is
// the name of the last that was listed, and next is "" at the end.
func (c *Control) ListAccountSettings(ctx context.Context, f SettingFilter, after string, limit int) (found []Setting, next string, err error) {
	principal, err := c.principal(f.Caller, f.Principal)
	if err != nil {
		return nil, "", err
	}
	if _, known := settingRules[f.Name]; f.Name != "" && !known {
		return nil, "", checkSetting(f.Name, "")
	}
	own, all := &Settings{Principal: principal}, &Settings{Principal: DefaultPrincipal}
	if err := c.Store.Load(ctx, own, all); err != nil {
		return nil, "", fmt.Errorf("list account settings: %w", err)
	}
	for _, name := range SettingNames() {
		value := own.Values[name]
		if f.Effective {
			value = cmp.Or(value, all.Values[name], settingRules[name].standard)
		}
		switch {
		case value == "" || name <= after || f.Name != "" && name != f.Name || f.Value != "" && value != f.Value:
		case len(found) == limit:
			return found, found[limit-1].Name, nil
		default:
			found = append(found, c.showSetting(name, value, principal))
		}
	}
	return found, "", nil
}
