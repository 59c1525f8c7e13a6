package ecsapi

import (
	"context"

	"github.com/longshore-run/longshore/lambdas/control"
)

type settingShape struct {
	Name      string `json:"name"`
	Value     string `json:"value"`
	Principal string `json:"principalArn"`
	Type      string `json:"type"`
}

type settingOut struct {
	Setting settingShape `json:"setting"`
}

func showSetting(s control.Setting) settingShape {
	kind := "user"
	if s.Managed {
		kind = "aws_managed"
	}
	return settingShape{s.Name, s.Value, s.Principal, kind}
}

func settingAnswer(s control.Setting, err error) (*settingOut, error) {
	if err != nil {
		return nil, err
	}
	return &settingOut{showSetting(s)}, nil
}

type putSettingIn struct {
	Name      string `json:"name" need:"true" judged:"control"`
	Value     string `json:"value" need:"true"`
	Principal string `json:"principalArn"`
}

func putAccountSetting(ctx context.Context, h *Handler, in *putSettingIn) (*settingOut, error) {
	return settingAnswer(h.control.PutAccountSetting(ctx, callOf(ctx).caller, in.Principal, in.Name, in.Value))
}

type putSettingDefaultIn struct {
	Name  string `json:"name" need:"true" judged:"control"`
	Value string `json:"value" need:"true"`
}

func putAccountSettingDefault(ctx context.Context, h *Handler, in *putSettingDefaultIn) (*settingOut, error) {
	return settingAnswer(h.control.PutAccountSettingDefault(ctx, in.Name, in.Value))
}

type deleteSettingIn struct {
	Name      string `json:"name" need:"true" judged:"control"`
	Principal string `json:"principalArn"`
}

func deleteAccountSetting(ctx context.Context, h *Handler, in *deleteSettingIn) (*settingOut, error) {
	return settingAnswer(h.control.DeleteAccountSetting(ctx, callOf(ctx).caller, in.Principal, in.Name))
}

type listSettingsIn struct {
	Name              string `json:"name" judged:"control"`
	Value             string `json:"value"`
	Principal         string `json:"principalArn"`
	EffectiveSettings bool   `json:"effectiveSettings"`
	MaxResults        *int   `json:"maxResults"`
	NextToken         string `json:"nextToken"`
}

type listSettingsOut struct {
	Settings  []settingShape `json:"settings"`
	NextToken string         `json:"nextToken,omitempty"`
}

// settingsPage is how many account settings ECS lists at once.
const settingsPage = 10

func listAccountSettings(ctx context.Context, h *Handler, in *listSettingsIn) (*listSettingsOut, error) {
	f := control.SettingFilter{Caller: callOf(ctx).caller, Principal: in.Principal, Name: in.Name, Value: in.Value, Effective: in.EffectiveSettings}
	l, err := newListing(in.NextToken, in.MaxResults, "ListAccountSettings", f)
	if err != nil {
		return nil, err
	}
	if in.MaxResults == nil {
		l.limit = settingsPage
	}
	found, next, err := h.control.ListAccountSettings(ctx, f, l.cursor.Last, l.limit)
	if err != nil {
		return nil, err
	}
	return &listSettingsOut{each(found, showSetting), l.token(control.Cursor{Last: next})}, nil
}
