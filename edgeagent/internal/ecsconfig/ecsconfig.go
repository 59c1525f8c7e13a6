// Package ecsconfig reads the settings that people already have for ECS's own agent
// (/etc/ecs/ecs.config, variables ECS_*) as settings of ours, where the meaning is the
// same, and says of the others why they are not obeyed. It reads no environment and no
// file. The agent's main imports it.
package ecsconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Translate reads settings of ECS's agent. It answers settings of ours, what is not
// obeyed and why, and an error that names each value that cannot be understood. A
// setting of ours that own has wins, and its counterpart is not looked at.
func Translate(ecs map[string]string, own func(name string) bool) (settings map[string]string, warnings []string, err error) {
	settings = map[string]string{}
	var faults []error
	names := make([]string, 0, len(ecs))
	for name := range ecs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value := strings.TrimSpace(ecs[name])
		row, known := find(name)
		switch {
		case value == "" || !strings.HasPrefix(name, "ECS_") && !known:
		case !known:
			warnings = append(warnings, name+" is not a setting of ECS's agent that is known here, and is ignored")
		case row.becomes == "":
			if !slices.Contains(row.same, strings.ToLower(value)) {
				warnings = append(warnings, fmt.Sprintf("%s is not obeyed: %s", name, row.why)) // some values are secrets
			}
		case own(row.becomes):
		default:
			text, err := row.read(value)
			if err != nil {
				faults = append(faults, fmt.Errorf("%s=%q: %w", name, value, err))
				continue
			}
			settings[row.becomes] = text
		}
	}
	return settings, warnings, errors.Join(faults...)
}

func find(name string) (row, bool) {
	i := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
	if i < 0 {
		return row{}, false
	}
	return rows[i], true
}

// Meaning is what becomes of one setting of ECS's agent.
type Meaning struct {
	Name    string
	Becomes string // the setting of ours with the same meaning, or ""
	Why     string // it is not obeyed
}

// Meanings are those of all that are known, in no particular order.
func Meanings() []Meaning {
	all := make([]Meaning, len(rows))
	for i, r := range rows {
		all[i] = Meaning{Name: r.name, Becomes: r.becomes, Why: r.why}
	}
	return all
}
