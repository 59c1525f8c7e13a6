package ecsapi

import (
	"maps"
	"slices"

	"github.com/longshore-run/longshore/shared/taskdef"
)

// tag is a tag in a request.
type tag struct {
	Key   string `json:"key" need:"true"`
	Value string `json:"value"`
}

// tagMap reads a list of tags; one given twice is refused.
func tagMap(all []tag) (map[string]string, error) {
	out := map[string]string{}
	for i, t := range all {
		if _, twice := out[t.Key]; twice {
			return nil, parameter("tags", "entry %d repeats the key %.130q", i, t.Key)
		}
		out[t.Key] = t.Value
	}
	return out, nil
}

// tagList is tags as they are shown: if they were asked for, else none.
func tagList(all map[string]string, wanted bool) []taskdef.Tag {
	out := []taskdef.Tag{}
	if wanted {
		for _, k := range slices.Sorted(maps.Keys(all)) {
			out = append(out, taskdef.Tag{Key: k, Value: all[k]})
		}
	}
	return out
}
