package eviction

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func anyRule(t *rapid.T) Rule {
	floor := rapid.Float64Range(1, 90).Draw(t, "floor")
	return Rule{
		When: rapid.SampledFrom([]When{WhenFull, Always, Never}).Draw(t, "when"), Floor: floor,
		Ceiling: rapid.Float64Range(floor, 95).Draw(t, "ceiling"), Limit: 95,
		Age: time.Duration(rapid.IntRange(0, 50).Draw(t, "age")), OtherAge: time.Duration(rapid.IntRange(0, 50).Draw(t, "other age")),
		Others: rapid.Bool().Draw(t, "others"), Most: rapid.IntRange(1, 5).Draw(t, "most"),
		Exclude: rapid.SliceOfN(rapid.SampledFrom([]string{"repo/kept", "repo/*:2", "*", "sha256:3", "kept"}), 0, 2).Draw(t, "exclude"),
	}
}

func anyImages(t *rapid.T) []Image {
	n := rapid.IntRange(0, 12).Draw(t, "images")
	all := make([]Image, n)
	for i := range all {
		all[i] = Image{
			ID:     fmt.Sprintf("sha256:%d", i),
			Names:  rapid.SliceOfN(rapid.SampledFrom([]string{"repo/kept:1", "repo/a:1", "repo/a:2", "kept:latest", "other.test:5000/x:1"}), 0, 2).Draw(t, "names"),
			Needed: rapid.Bool().Draw(t, "needed"), Ours: rapid.Bool().Draw(t, "ours"),
			Last: time.Duration(rapid.IntRange(0, 100).Draw(t, "last")),
		}
	}
	return all
}

func TestPlan_NothingGoesThatIsNeededExcludedOrSomebodyElses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, images := anyRule(t), anyImages(t)
		urgent, now := rapid.Bool().Draw(t, "urgent"), time.Duration(rapid.IntRange(0, 200).Draw(t, "now"))
		plan := Plan(images, r, now, urgent)
		for n, i := range plan {
			switch {
			case r.When == Never:
				t.Fatalf("%+v goes though nothing may", i)
			case i.Needed:
				t.Fatalf("%+v goes though it is needed", i)
			case !i.Ours && !r.Others:
				t.Fatalf("%+v goes though it is not ours", i)
			case slices.ContainsFunc(r.Exclude, func(p string) bool { return matches(p, i) }):
				t.Fatalf("%+v goes though it is excluded", i)
			case !urgent && i.Ours && now-i.Last < r.Age, !i.Ours && now-i.Last < r.OtherAge:
				t.Fatalf("%+v goes at %d though it is too young", i, now)
			case n > 0 && plan[n-1].Last > i.Last:
				t.Fatalf("%+v goes before %+v, which was needed before it", plan[n-1], i)
			}
		}
		if !r.Enough(100, r.Most, false) || r.Most > 0 && r.Enough(100, r.Most-1, false) || r.Enough(100, r.Most, true) {
			t.Fatalf("%d are not the most", r.Most)
		}
		for _, i := range images { // what may go does, in its turn
			if slices.ContainsFunc(plan, func(p Image) bool { return p.ID == i.ID }) != r.mayGo(i, now, urgent) && r.When != Never {
				t.Fatalf("%+v", i)
			}
		}
	})
}

// Followed to its end a clean-up begins above the ceiling only, ends below the floor
// or with nothing left, and does not begin again by itself.
func TestRule_BeginsAboveTheCeilingAndGoesOnUntilBelowTheFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRule(t)
		r.When = WhenFull
		used := rapid.Float64Range(1, 100).Draw(t, "used")
		if began := r.Begins(used, false, false); began != (used > r.Ceiling) {
			t.Fatalf("at %v it begins: %v", used, began)
		}
		going := used > r.Ceiling
		for going {
			if !r.Begins(used, true, false) {
				if used > r.Floor {
					t.Fatalf("it ends at %v, above the floor", used)
				}
				break
			}
			if r.Enough(used, -1, false) {
				t.Fatalf("at %v it is enough, and goes on", used)
			}
			used -= rapid.Float64Range(0.5, 5).Draw(t, "freed")
		}
		if going && r.Begins(used, false, false) {
			t.Fatalf("it begins again at %v", used)
		}
	})
}

func TestRule_AlwaysNeedsNoFullDiskAndNeverCleansNothing(t *testing.T) {
	if r := (Rule{When: Always, Ceiling: 85, Floor: 75}); !r.Begins(1, false, false) || r.Enough(1, -1, false) {
		t.Error("always waits for a full disk")
	}
	if r := (Rule{When: Never}); r.Begins(100, true, true) {
		t.Error("never begins")
	}
}

func TestFull_DoesNotChangeItsWordWithEachFile(t *testing.T) {
	r := Rule{Limit: 95}
	for _, c := range []struct {
		used        float64
		was, failed bool
		want        bool
	}{
		{94.9, false, false, false}, {95, false, false, true}, {94, true, false, true}, {90, true, false, true}, {89.9, true, false, false},
		{92, false, true, true}, {60, false, true, false}, // one image that is too large leaves room for others
	} {
		if got := r.Full(c.used, c.was, c.failed); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestExclude_IsByNameTagDigestIdAndPattern(t *testing.T) {
	i := Image{ID: "sha256:1d", Names: []string{"busybox:1.36", "busybox@sha256:aa"}}
	own := Image{ID: "sha256:2d", Names: []string{"123.dkr.ecr.eu-west-1.amazonaws.com/team/app:7"}}
	for pattern, want := range map[string][2]bool{
		"busybox":                        {true, false},
		"busybox:1.36":                   {true, false},
		"busybox:1.37":                   {false, false},
		"docker.io/library/busybox":      {true, false},
		"docker.io/library/busybox:1.36": {true, false},
		"busybox@sha256:aa":              {true, false},
		"sha256:aa":                      {true, false},
		"sha256:1d":                      {true, false},
		"busy*":                          {true, false},
		"busybox:1.*":                    {true, false},
		"box":                            {false, false},
		"123.dkr.ecr.eu-west-1.amazonaws.com/team/*": {false, true},
		"*/team/app:7":   {false, true},
		"*/team/app":     {false, true},
		"*/other/app":    {false, false},
		"sha256:nothing": {false, false},
	} {
		if got := [2]bool{matches(pattern, i), matches(pattern, own)}; got != want {
			t.Errorf("%s: %v, want %v", pattern, got, want)
		}
	}
	if CheckPattern("a[") == nil || CheckPattern("team/*") != nil {
		t.Error("patterns are not checked")
	}
}

func TestCanonical_IsOneForAllWaysToWriteAName(t *testing.T) {
	for want, all := range map[string][]string{
		"busybox:latest":             {"busybox", "library/busybox", "docker.io/busybox", "docker.io/library/busybox:latest", "index.docker.io/library/busybox"},
		"busybox@sha256:aa":          {"busybox@sha256:aa", "docker.io/library/busybox:1@sha256:aa"},
		"team/app:latest":            {"team/app", "docker.io/team/app"},
		"host.test:5000/app:latest":  {"host.test:5000/app"},
		"host.test:5000/app:1":       {"host.test:5000/app:1"},
		"localhost/library/x:latest": {"localhost/library/x"},
	} {
		for _, ref := range all {
			if got := Canonical(ref); got != want {
				t.Errorf("%s: %s, want %s", ref, got, want)
			}
		}
	}
}

func TestCovers_AnImageThatSomebodyElseNamedIsNotOursAlone(t *testing.T) {
	refs := []string{"busybox", "docker.io/library/busybox:1"}
	for want, all := range map[bool][][]string{
		true:  {{}, {"busybox:latest"}, {"busybox:1", "busybox:latest"}, {"busybox@sha256:aa"}},
		false: {{"busybox:latest", "mine:1"}, {"busybox:2"}, {"other@sha256:aa"}},
	} {
		for _, names := range all {
			if got := Covers(refs, names); got != want {
				t.Errorf("%v: %v", names, got)
			}
		}
	}
}
