package dockerengine

import (
	"testing"

	"github.com/docker/docker/api/types/image"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

func TestChooseDigest_IsThatOfTheRepositoryAskedFor(t *testing.T) {
	list := []string{"other@" + digestB, "busybox@" + digestA, "<none>@<none>", "busybox@" + digestB}
	for ref, want := range map[string]string{
		"busybox":                        digestA,
		"docker.io/library/busybox:1.36": digestA,
		"other:latest":                   digestB,
		"third":                          "sha256:1d",
		"NOT/valid":                      "sha256:1d",
		// The one asked for, though it is not the first.
		"busybox@" + digestB:      digestB,
		"busybox:1.36@" + digestB: digestB,
	} {
		if got := chooseDigest("sha256:1d", ref, "", list); got != want {
			t.Errorf("%s: %s, want %s", ref, got, want)
		}
	}
	if got := chooseDigest("sha256:1d", "busybox:2", digestB, list); got != digestB {
		t.Errorf("the tag's pull said %s, chosen was %s", digestB, got)
	}
	if got := chooseDigest("sha256:1d", "other", digestA, list); got != digestB {
		t.Errorf("what was said and is not there was chosen: %s", got)
	}
}

// An image that was pushed twice has two digests in one repository. What a task is
// said to run is the one its tag came to.
func TestImage_TheDigestIsTheOneThatThePullCameTo(t *testing.T) {
	s := newStub(t)
	s.on(routeImage, give(image.InspectResponse{ID: "sha256:1d", RepoDigests: []string{"busybox@" + digestA, "busybox@" + digestB}}))
	s.on("GET /images/docker.io/library/busybox:latest/json", give(image.InspectResponse{ID: "sha256:1d"}))
	s.on("GET /images/json", give([]image.Summary{}))
	s.on(routePull, lines(`{"status":"Pulling"}`, `{"status":"Digest: `+digestB+`"}`, `{"status":"Status: Image is up to date"}`))
	e := s.engine(t, patient())
	if digest, err := e.Image(t.Context(), "busybox", agent.Login{}); err != nil || digest != digestB {
		t.Errorf("%s, %v, want %s", digest, err, digestB)
	}
}

// An image that was there already and is not pulled shows its digest as well.
func TestImage_OneThatWasThereAlreadyShowsItsDigest(t *testing.T) {
	s := newStub(t)
	s.on(routeImage, there)
	if digest, err := s.engine(t, patient(), WithPolicy(PolicyPreferCached)).Image(t.Context(), "busybox", agent.Login{}); err != nil || digest != digestA {
		t.Errorf("%s, %v, want %s", digest, err, digestA)
	}
	if n := s.count(routePull); n != 0 {
		t.Errorf("%d pulls", n)
	}
}
