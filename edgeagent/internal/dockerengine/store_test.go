package dockerengine

import (
	"errors"
	"net/http"
	"reflect"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/system"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

func TestImages_SaysWhichAreNeededByWhomever(t *testing.T) {
	s := newStub(t)
	s.on("GET /images/json", give([]image.Summary{
		{ID: "sha256:1", RepoTags: []string{"a:1"}, RepoDigests: []string{"a@" + digestA}, Size: 5},
		{ID: "sha256:2", RepoTags: []string{"<none>:<none>"}, RepoDigests: []string{"<none>@<none>"}},
		{ID: "sha256:3", RepoTags: []string{"b:latest"}},
		{ID: "sha256:5", RepoTags: []string{agent.PauseImage}},
		{ID: "sha256:4", RepoTags: []string{"pause"}, Labels: map[string]string{"run.longshore.image": "pause"}},
	}))
	s.on("GET /containers/json", give([]container.Summary{
		{ID: "c1", ImageID: "sha256:1", Image: "sha256:1"}, // no agent's
		{ID: "c2", ImageID: "sha256:other", Image: "docker.io/library/b"},
	}))
	got, err := s.engine(t, patient()).Images(t.Context())
	want := []agent.Image{
		{ID: "sha256:1", Names: []string{"a:1", "a@" + digestA}, Size: 5, InUse: true},
		{ID: "sha256:2", Names: []string{}},
		{ID: "sha256:3", Names: []string{"b:latest"}, InUse: true},
		{ID: "sha256:5", Names: []string{agent.PauseImage}, Kept: true},
		{ID: "sha256:4", Names: []string{"pause"}, Kept: true},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
}

// inspected answers looks at an image by each of its names.
func inspected(s *stub, id string, names ...string) {
	for _, n := range names {
		s.on("GET /images/"+n+"/json", give(image.InspectResponse{ID: id}))
	}
}

func TestRemoveImage_TakesOffItsNamesAndIsNeverForced(t *testing.T) {
	s := newStub(t)
	s.on("GET /containers/json", give([]container.Summary{}))
	inspected(s, "sha256:1", "a:1", "sha256:1")
	inspected(s, "sha256:9", "a:2") // the tag went on to another image
	var removed []string
	for _, n := range []string{"a:1", "a:2", "sha256:1"} {
		s.on("DELETE /images/"+n, func(w http.ResponseWriter, r *http.Request) {
			removed = append(removed, n)
			if f := r.URL.Query().Get("force"); f != "" && f != "0" && f != "false" {
				t.Errorf("the removal of %s is forced", n)
			}
			give([]image.DeleteResponse{})(w, r)
		})
	}
	if err := s.engine(t, patient()).RemoveImage(t.Context(), agent.Image{ID: "sha256:1", Names: []string{"a:1", "a:2"}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(removed, []string{"a:1", "sha256:1"}) {
		t.Errorf("removed were %v", removed)
	}
}

func TestRemoveImage_WhatAContainerCameToNeedIsAConflict(t *testing.T) {
	s := newStub(t)
	s.on("GET /containers/json", give([]container.Summary{{ID: "c1"}}))
	err := s.engine(t, patient()).RemoveImage(t.Context(), agent.Image{ID: "sha256:1", Names: []string{"a:1"}})
	if !fault.Is(err, fault.Conflict) || s.count("DELETE /images/a:1") != 0 {
		t.Errorf("%v", err)
	}
}

func TestPulled_TellsWhatIsNewOnlyWhereThatIsKnown(t *testing.T) {
	const full = "docker.io/library/busybox:latest"
	for name, c := range map[string]struct {
		before http.HandlerFunc
		want   bool
	}{
		"it is new":        {give([]image.Summary{{ID: "sha256:other"}}), true},
		"it was there":     {give([]image.Summary{{ID: "sha256:1d"}}), false},
		"nobody can say":   {say(http.StatusInternalServerError, "no"), false},
		"nothing is there": {give([]image.Summary{}), true},
	} {
		s := newStub(t)
		s.on("GET /images/json", c.before)
		s.on(routeImage, inTurn(absent404, there))
		inspected(s, "sha256:1d", full)
		s.on(routePull, pulled)
		e := s.engine(t, patient())
		if _, err := e.Image(t.Context(), "busybox", agent.Login{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := e.Pulled(); !slices.Equal(got, []agent.Pulled{{ID: "sha256:1d", Ref: full, New: c.want}}) {
			t.Errorf("%s: %+v", name, got)
		}
		if got := e.Pulled(); len(got) != 0 {
			t.Errorf("%s: told twice: %+v", name, got)
		}
	}
}

func TestImage_AFullDiskIsNamedAndNotTriedAgain(t *testing.T) {
	s := newStub(t)
	s.on(routePull, lines(`{"errorDetail":{"message":"write /var/lib/docker/tmp/x: no space left on device"},"error":"x"}`))
	_, err := s.engine(t, patient()).Image(t.Context(), "busybox", agent.Login{})
	if _, ok := errors.AsType[*agent.NoRoom](err); !ok || !fault.Is(err, fault.NotFound) || s.count(routePull) != 1 {
		t.Errorf("%v after %d pulls", err, s.count(routePull))
	}
}

func TestDisk_IsThatOfTheEnginesImages(t *testing.T) {
	s := newStub(t)
	s.on("GET /info", give(system.Info{DockerRootDir: t.TempDir()}))
	e := s.engine(t, patient())
	d, err := e.Disk(t.Context())
	if err != nil || d.Size <= 0 || d.Free < 0 || d.Free > d.Size || d.Used() < 0 || d.Used() > 100 {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := e.Disk(t.Context()); err != nil || s.count("GET /info") != 1 {
		t.Errorf("%v after %d calls", err, s.count("GET /info"))
	}
	s = newStub(t)
	s.on("GET /info", give(system.Info{DockerRootDir: "/no/such/folder"}))
	if _, err := s.engine(t, patient()).Disk(t.Context()); !fault.Is(err, fault.Unsupported) {
		t.Errorf("a folder that is not seen: %v", err)
	}
	far, err := New("tcp://127.0.0.1:1", "i", "default")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := far.Disk(t.Context()); !fault.Is(err, fault.Unsupported) {
		t.Errorf("an engine elsewhere: %v", err)
	}
}

func TestRoots_AreContainerdsTooWhereImagesAreLeftToIt(t *testing.T) {
	with := system.Info{DockerRootDir: "/data", DriverStatus: [][2]string{{"driver-type", "io.containerd.snapshotter.v1"}}}
	if got := roots(with); !slices.Equal(got, []string{"/data", containerdRoot}) {
		t.Errorf("%v", got)
	}
	if got := roots(system.Info{DockerRootDir: "/data", DriverStatus: [][2]string{{"Backing Filesystem", "extfs"}}}); !slices.Equal(got, []string{"/data"}) {
		t.Errorf("%v", got)
	}
}
