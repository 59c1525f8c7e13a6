//go:build sim || soak

package search

import "testing"

// asked are the mistakes that were asked for when the search was begun, and the
// seventeen of the executable model that the design was written with, each with
// the mutant that plants it.
var asked = map[string]string{
	"drop a condition":                                  "reap-blind",
	"swap two writes":                                   "acknowledged-first",
	"release on request":                                "release-on-request",
	"release twice":                                     "release-twice",
	"forget the epoch":                                  "epoch-forgotten",
	"use the host's clock":                              "hosts-clock",
	"let work in before stale is 0":                     "stale-ignored",
	"count a refusal down":                              "refusal-counts-down",
	"apply an inventory as a report":                    "inventory-as-report",
	"drop an end with an old n":                         "old-end-dropped",
	"model 1: release at the request":                   "release-on-request",
	"model 2: an end releases again":                    "release-twice",
	"model 3: stale ignored by admission and echo":      "stale-ignored",
	"model 4: inventory applied as a report":            "inventory-as-report",
	"model 5: agent accepts assigns of older epochs":    "agent-no-fence",
	"model 6: agent forgets at a successful send":       "agent-forgets-on-send",
	"model 7: stop of something unknown, no tombstone":  "agent-no-tombstone",
	"model 8: reaper not conditional on the lease":      "reap-blind",
	"model 9: an end does not count stale down":         "end-keeps-stale",
	"model 10: StopTask makes an open task STOPPED":     "stop-is-end",
	"model 11: reports applied whatever their n":        "reports-go-back",
	"model 12: vanished judged without n":               "vanished-without-n",
	"model 13: a not clean inventory makes schedulable": "not-clean",
	"model 14: an older register is accepted":           "older-register",
	"model 15: ends of expired tasks not acknowledged":  "expired-not-acknowledged",
	"model 16: service creates without the bound":       "service-unbound",
	"model 17: a refusal counts live down":              "refusal-counts-down",
}

// What was asked for is planted.
func TestMutants_AllThatWereAskedForArePlanted(t *testing.T) {
	for what, name := range asked {
		if _, err := readMutant(name); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
