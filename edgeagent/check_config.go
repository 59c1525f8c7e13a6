package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/shared/setting"
)

// serviceFiles are the files whose settings the packaged service is started with, in
// its order.
var serviceFiles = []string{"/etc/ecs/ecs.config", "/etc/longshore/agent.env"}

// orServiceFiles are the files that were given, or else those of the service that are
// there.
func orServiceFiles(files []string) []string {
	if len(files) > 0 {
		return files
	}
	for _, f := range serviceFiles {
		if _, err := os.Stat(f); err == nil {
			files = append(files, f)
		}
	}
	return files
}

// judged is what check-config answers with -o json.
type judged struct {
	Good     bool     `json:"good"`
	Files    []string `json:"files"`
	Faults   []string `json:"faults"`
	Warnings []string `json:"warnings"`
	// Settings are those that differ from their default.
	Settings map[string]string `json:"settings"`
}

// checkConfig reads the settings and says what is wrong with them.
func checkConfig(files, args []string, lookup func(string) (string, bool), environ []string, stdout, stderr io.Writer) int {
	output, err := outputFlag("check-config", args)
	if err != nil {
		return misused(stderr, err.Error())
	}
	files = orServiceFiles(files)
	c, err := readConfig(files, lookup, environ)
	code := exitOK
	if err != nil {
		code = exitFault
	}
	if output == "json" {
		all := judged{Good: err == nil, Files: orEmpty(files), Faults: orEmpty(lines(err)), Warnings: orEmpty(c.warnings), Settings: setting.Shown(c.Agent)}
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(all); err != nil {
			fmt.Fprintln(stderr, err)
			return exitFault
		}
		return code
	}
	for _, w := range c.warnings {
		fmt.Fprintln(stderr, "warning:", w)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return code
	}
	fmt.Fprintln(stdout, "the settings are good")
	from := append(slices.Clone(files), "the environment")
	fmt.Fprintf(stdout, "read: %s; these are not the defaults:\n", strings.Join(from, ", "))
	shown := setting.Shown(c.Agent)
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		fmt.Fprintf(stdout, "  %s=%s\n", name, shown[name])
	}
	return code
}

// lines are the faults that an error joins.
func lines(err error) []string {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []string{err.Error()}
	}
	var all []string
	for _, e := range joined.Unwrap() {
		all = append(all, lines(e)...)
	}
	return all
}

func orEmpty(all []string) []string {
	if all == nil {
		return []string{}
	}
	return all
}
