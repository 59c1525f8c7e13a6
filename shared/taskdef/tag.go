package taskdef

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of tags.
const (
	maxTags     = 50
	maxTagKey   = 128
	maxTagValue = 256
)

// ValidateTags judges the tags of any resource; path names the list in messages.
func ValidateTags(path string, tags []Tag) error { return tagRules(path, tags).err() }

func tagRules(path string, tags []Tag) Faults {
	var fs Faults
	if len(tags) > maxTags {
		fs.invalid(path, "are %d; allowed are %d", len(tags), maxTags)
	}
	seen := map[string]bool{}
	for i, t := range tags {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch n := utf8.RuneCountInString(t.Key); {
		case n == 0:
			fs.invalid(at+".key", "is required")
		case n > maxTagKey:
			fs.invalid(at+".key", "is %d characters long; allowed are %d", n, maxTagKey)
		case len(t.Key) >= 4 && strings.EqualFold(t.Key[:4], "aws:"):
			fs.invalid(at+".key", "is %s; the prefix aws: is reserved", show(t.Key))
		case seen[t.Key]:
			fs.invalid(at+".key", "repeats %s", show(t.Key))
		}
		seen[t.Key] = true
		if n := utf8.RuneCountInString(t.Value); n > maxTagValue {
			fs.invalid(at+".value", "is %d characters long; allowed are %d", n, maxTagValue)
		}
		if len(t.Value) >= 4 && strings.EqualFold(t.Value[:4], "aws:") {
			fs.invalid(at+".value", "is %s; the prefix aws: is reserved", show(t.Value))
		}
		tagText(&fs, at+".key", t.Key)
		tagText(&fs, at+".value", t.Value)
	}
	return fs
}

func tagText(fs *Faults, path, text string) {
	for _, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsSpace(r) && !strings.ContainsRune("_.:/=+-@", r) {
			fs.invalid(path, "holds %q; allowed are letters, digits, spaces and _ . : / = + - @", r)
			return
		}
	}
}
