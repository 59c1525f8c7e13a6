package main

import (
	"os"
	"strings"
	"testing"
)

func TestConfig_WhatIsSaidOfImagesFitsTogether(t *testing.T) {
	read := func(lines ...string) error {
		_, err := readConfig([]string{os.DevNull}, func(string) (string, bool) { return "", false },
			append(lines, "LONGSHORE_REPORTS_QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/0/r", "LONGSHORE_HEARTBEATS_QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/0/h"))
		return err
	}
	if err := read("LONGSHORE_IMAGE_CLEANUP_EXCLUDE=busybox,team/*:keep,sha256:00", "LONGSHORE_IMAGE_CLEANUP_FLOOR=50"); err != nil {
		t.Error(err)
	}
	for want, lines := range map[string][]string{
		"LONGSHORE_IMAGE_CLEANUP_FLOOR is 85: it must be less than LONGSHORE_IMAGE_CLEANUP_CEILING, which is 85": {"LONGSHORE_IMAGE_CLEANUP_FLOOR=85"},
		"LONGSHORE_IMAGE_NO_ROOM is 80: it must be more than LONGSHORE_IMAGE_CLEANUP_CEILING, which is 85":       {"LONGSHORE_IMAGE_NO_ROOM=80"},
		`LONGSHORE_IMAGE_CLEANUP_EXCLUDE has "a[", which is no pattern`:                                          {"LONGSHORE_IMAGE_CLEANUP_EXCLUDE=busybox,a["},
		`LONGSHORE_IMAGE_PULLS="1": must be at least 2`:                                                          {"LONGSHORE_IMAGE_PULLS=1"},
	} {
		if err := read(lines...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", lines, err, want)
		}
	}
}
