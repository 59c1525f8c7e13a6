package eviction

import (
	"path"
	"slices"
	"strings"
)

// Canonical is a reference in the one way in which all ways of writing it agree: no
// word of Docker's own registry, always a tag or a digest, and no tag beside a digest.
func Canonical(ref string) string {
	for _, own := range []string{"docker.io/", "index.docker.io/"} {
		if rest, ok := strings.CutPrefix(ref, own); ok {
			ref = strings.TrimPrefix(rest, "library/")
			break
		}
	}
	if name, ok := strings.CutPrefix(ref, "library/"); ok {
		ref = name
	}
	name, digest, pinned := strings.Cut(ref, "@")
	if pinned {
		return untagged(name) + "@" + digest
	}
	if untagged(ref) == ref {
		return ref + ":latest"
	}
	return ref
}

// untagged is a name without its tag.
func untagged(name string) string {
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		return name[:colon]
	}
	return name
}

// Same says whether two references name the same.
func Same(a, b string) bool { return Canonical(a) == Canonical(b) }

// matches says whether a pattern is about an image: a digest or an id is compared
// with its ids and digests, anything else with each of its names, with and without
// tag, in short and in full.
func matches(pattern string, i Image) bool {
	if strings.HasPrefix(pattern, "sha256:") {
		return i.ID == pattern || slices.ContainsFunc(i.Names, func(n string) bool { return strings.HasSuffix(n, "@"+pattern) })
	}
	return slices.ContainsFunc(i.Names, func(n string) bool {
		return slices.ContainsFunc(forms(n), func(form string) bool {
			ok, err := path.Match(pattern, form)
			return ok && err == nil
		})
	})
}

// forms are all the ways to write a name that the engine shows.
func forms(name string) []string {
	short := Canonical(name)
	bare := repository(short)
	all := []string{short, bare}
	switch head, _, below := strings.Cut(bare, "/"); {
	case !below:
		all = append(all, "docker.io/library/"+short, "docker.io/library/"+bare, "library/"+short, "library/"+bare)
	case !strings.ContainsAny(head, ".:") && head != "localhost":
		all = append(all, "docker.io/"+short, "docker.io/"+bare)
	}
	return all
}

// Covers says whether every name of an image is one under which it was pulled: its
// tags among refs, its digests in their repositories. Else somebody else has named or
// pulled it, too.
func Covers(refs, names []string) bool {
	tags, repositories := map[string]bool{}, map[string]bool{}
	for _, r := range refs {
		c := Canonical(r)
		tags[c], repositories[repository(c)] = true, true
	}
	return !slices.ContainsFunc(names, func(n string) bool {
		c := Canonical(n)
		if strings.Contains(c, "@") {
			return !repositories[repository(c)]
		}
		return !tags[c]
	})
}

// repository is a canonical reference without tag and digest.
func repository(canonical string) string {
	name, _, _ := strings.Cut(canonical, "@")
	return untagged(name)
}
