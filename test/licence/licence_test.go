package licence_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/test/licence"
)

func TestOf_KnowsALicenceByWhatItSays(t *testing.T) {
	for text, want := range map[string][]string{
		"Apache License\n   Version 2.0, January 2004": {"Apache-2.0"},
		"Permission is hereby granted, free\nof charge, to any person obtaining a copy … The above copyright notice and this\npermission notice shall be included": {"MIT"},
		"Redistributions of source code must retain … Redistributions in binary form must reproduce":                                                               {"BSD-2-Clause"},
		"Redistributions of source code must retain … Redistributions in binary form must reproduce … endorse or promote products":                                 {"BSD-3-Clause"},
		"Mozilla Public License, version 2.0\n… secondary license":                                                                                                 {"MPL-2.0"},
		"Mozilla Public License Version 2.0":   {"MPL-2.0"},
		"GNU GENERAL PUBLIC LICENSE Version 3": {"GPL"},
		"GNU AFFERO GENERAL PUBLIC LICENSE":    {"AGPL"},
		"Business Source License 1.1":          {"BUSL-1.1"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "LICENSE.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := licence.Of(licence.Module{Path: "m", Dir: dir}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%.40q: %v, %v", text, got, err)
		}
	}
}

func TestOf_WhatNobodyKnowsIsAFault(t *testing.T) {
	dir := t.TempDir()
	if _, err := licence.Of(licence.Module{Path: "m", Dir: dir}); err == nil {
		t.Error("a module without a licence passes")
	}
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("Do what you like, except on Sundays."), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := licence.Of(licence.Module{Path: "m", Dir: dir}); err == nil || !strings.Contains(err.Error(), "LICENSE") {
		t.Errorf("a licence of its own passes: %v", err)
	}
}

func TestCheck_WhatShipsIsHeldStricterThanWhatTests(t *testing.T) {
	for _, c := range []struct {
		names   []string
		shipped bool
		let     bool
	}{
		{[]string{"MIT"}, true, true}, {[]string{"Apache-2.0", "MIT"}, true, true}, {[]string{"MPL-2.0"}, true, false}, {[]string{"MPL-2.0"}, false, true},
		{[]string{"GPL"}, false, false}, {[]string{"MIT", "AGPL"}, true, false}, {[]string{"BUSL-1.1"}, false, false},
	} {
		if err := licence.Check(licence.Module{Path: "m", Shipped: c.shipped}, c.names); (err == nil) != c.let {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
