// Package eviction decides which images of an engine are cleaned up, and whether its
// disk has room for more. It only decides: it knows no engine, no clock and no disk.
// The agent's front door and its main may import it.
package eviction

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// When says in which case images are cleaned up.
type When string

const (
	// WhenFull cleans up once the disk is fuller than the ceiling, until it is below the floor.
	WhenFull When = "disk"
	// Always cleans up what is old enough in each cycle, however much room there is: as ECS's agent.
	Always When = "always"
	// Never cleans up nothing, also not where there is no room.
	Never When = "off"
)

// Rule is what a clean-up keeps to.
type Rule struct {
	When           When
	Ceiling, Floor float64 // percent of the disk
	Limit          float64 // percent, past which there is no room for more
	// Age is how long nothing has needed an image of ours before it goes, OtherAge
	// the same of those that somebody else brought, which go only if Others.
	Age, OtherAge time.Duration
	Others        bool
	Most          int      // in one cycle; an urgent one takes as many as it needs
	Exclude       []string // patterns of names, and ids or digests
}

// Image is one image that might go.
type Image struct {
	ID     string
	Names  []string // as the engine shows them
	Needed bool     // by a container of anybody, by a task that is about to make one, or by the agent itself
	Ours   bool     // this agent pulled it, under each of its tags
	// Last is when it was last needed or, if that is longer ago, came to be known; a
	// time on the clock of Plan's now.
	Last time.Duration
}

// Begins says whether a cycle has anything to do: used is how full the disk is in
// percent, and going that an earlier cycle began and has not come below the floor.
func (r Rule) Begins(used float64, going, urgent bool) bool {
	switch {
	case r.When == Never:
		return false
	case r.When == Always || urgent:
		return true
	}
	return used > r.Ceiling || going && used > r.Floor
}

// Enough says whether a cycle that has removed so many may end: for this time they are
// enough, or there is room again.
func (r Rule) Enough(used float64, removed int, urgent bool) bool {
	return !urgent && removed >= r.Most || r.When == WhenFull && used > 0 && used < r.Floor || r.When == Always && urgent && used > 0 && used < r.Floor
}

// Plan lists what may go in this cycle, in order: what nothing has needed for longest
// comes first. An urgent one, for which there is no room, waits for no age; but what is
// needed, excluded, or not ours stays in each of them. How many of it go Enough says:
// one that cannot be removed takes no other's place.
func Plan(images []Image, r Rule, now time.Duration, urgent bool) []Image {
	if r.When == Never {
		return nil
	}
	var out []Image
	for _, i := range images {
		if r.mayGo(i, now, urgent) {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b Image) int { return cmp.Or(cmp.Compare(a.Last, b.Last), strings.Compare(a.ID, b.ID)) })
	return out
}

func (r Rule) mayGo(i Image, now time.Duration, urgent bool) bool {
	age := r.Age
	if !i.Ours {
		age = r.OtherAge
	}
	switch {
	case i.Needed, !i.Ours && !r.Others, r.excludes(i):
		return false
	case urgent && i.Ours:
		return true
	}
	return now-i.Last >= age
}

func (r Rule) excludes(i Image) bool {
	return slices.ContainsFunc(r.Exclude, func(pattern string) bool { return matches(pattern, i) })
}

// Full says whether there is no room for more. What was full is so until it is five
// percent below the limit, so that an instance does not change its word with each
// file. failed says that a pull has just found no room: that counts from there on.
func (r Rule) Full(used float64, was, failed bool) bool {
	if was || failed {
		return used >= r.Limit-slack
	}
	return used >= r.Limit
}

// slack is by how much of the disk, in percent, it has to be emptier than the limit
// before there is room again.
const slack = 5

// CheckPattern says what is wrong with a pattern of Exclude.
func CheckPattern(pattern string) error {
	if _, err := path.Match(pattern, ""); errors.Is(err, path.ErrBadPattern) {
		return fmt.Errorf("%q, which is no pattern: * stands for any text without a slash, ? for one letter, [abc] for one of them", pattern)
	}
	return nil
}
