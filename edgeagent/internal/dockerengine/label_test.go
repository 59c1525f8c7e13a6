package dockerengine

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// merged is what Docker makes of an image's labels and a container's own.
func merged(image, own map[string]string) map[string]string {
	all := maps.Clone(image)
	maps.Copy(all, own)
	return all
}

// hostile are the labels of an image that wants to be somebody else, or not to
// count, or to keep its agent busy for ever.
func hostile(value string) map[string]string {
	image := map[string]string{}
	for _, name := range []string{
		labelInstance, labelTask, labelAttempt, labelContainer, labelCluster, labelDefinition, labelEpoch, labelTaskARN,
		labelGPUs, labelPorts, labelRows, labelEssential, labelHealth, labelVolume, labelScope,
		ecsCluster, ecsContainer, ecsTaskARN, ecsFamily, ecsVersion,
	} {
		image[name] = value
	}
	return image
}

// An image carries labels of its own, which Docker puts under those of the
// container: one that is not set for this container would show through.
func TestLabels_OfAnImageNeverShowThroughOurs(t *testing.T) {
	memory := 16
	def := taskdef.TaskDefinition{Spec: taskdef.Spec{Family: "web", ContainerDefinitions: []taskdef.ContainerDefinition{{Name: "main", Image: "x", Memory: &memory}}}}
	spec := specOf(def, "main")
	plain := containerLabels("instance", spec, def.ContainerDefinitions[0])
	for name, value := range merged(hostile("1-9223372036854775807/udp"), plain) {
		if value == "1-9223372036854775807/udp" {
			t.Errorf("the image says what %s is", name)
		}
	}
	volume := volumeLabels("instance", spec, "v", nil)
	if volume[labelScope] != "task" || volume[labelInstance] != "instance" {
		t.Errorf("a volume is labelled %v", volume)
	}
}

func TestLabels_OfAUserNeverReplaceOurs(t *testing.T) {
	def := taskdef.TaskDefinition{Spec: taskdef.Spec{Family: "web", ContainerDefinitions: []taskdef.ContainerDefinition{{Name: "main", Image: "x", DockerLabels: hostile("forged")}}}}
	for name, value := range containerLabels("instance", specOf(def, "main"), def.ContainerDefinitions[0]) {
		if value == "forged" {
			t.Errorf("a task definition says what %s is", name)
		}
	}
}

// FuzzLabels: what a container remembers of itself is read back; what anybody else
// wrote there is read without a panic, and as ports that exist.
func FuzzLabels(f *testing.F) {
	f.Add("web", 3, int64(1764489600), "main", "7000-7009/udp,80-81/tcp", "80/tcp,53/udp")
	f.Add("", -1, int64(-1), "", "1-9223372036854775807/udp", "99999999999999999999/tcp")
	f.Add("a:b", 0, int64(0), "x", "9-1/tcp,0-0/", "-1/tcp,,/")
	f.Fuzz(func(t *testing.T, family string, revision int, epoch int64, name, rows, ports string) {
		spec := agent.Spec{ContainerID: agent.ContainerID{Task: testTask, Attempt: 2, Container: name}, Family: family, Revision: revision, Epoch: epoch}
		labels := merged(map[string]string{labelRows: rows, labelPorts: ports}, containerLabels("instance", spec, taskdef.ContainerDefinition{Name: name}))
		if id, e := identity(labels); id != spec.ContainerID || e != epoch {
			t.Fatalf("%+v, epoch %d come back as %+v, %d", spec.ContainerID, epoch, id, e)
		}
		if fam, rev := definition(labels); fam != family || rev != revision {
			t.Fatalf("%s:%d comes back as %s:%d", family, revision, fam, rev)
		}
		total := 0
		for _, r := range rowsOf(rows) {
			if r.First < 1 || r.Last > 65535 || r.Last < r.First || r.Protocol != "tcp" && r.Protocol != "udp" {
				t.Fatalf("%q is read as %+v", rows, r)
			}
			total += r.Last - r.First + 1
		}
		if total > 0 {
			if again := rowsOf(rowLabel(rowsOf(rows))); len(again) != len(rowsOf(rows)) {
				t.Fatalf("%q is read as %v and then %v", rows, rowsOf(rows), again)
			}
		}
		for _, b := range hostBindings(ports) {
			if b.HostPort < 1 || b.HostPort > 65535 || strings.Contains(b.Protocol, ",") {
				t.Fatalf("%q is read as %+v", ports, b)
			}
		}
		c := container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{HostConfig: &container.HostConfig{}}, Config: &container.Config{Labels: map[string]string{labelRows: rows, labelPorts: ports}}}
		fold(bindings(c), rowsOf(rows))
		lostRow(c, []hostPort{{Port: 80, Protocol: "tcp"}})
	})
}

// FuzzCreate: a create request is made of any definition that is stored, or refused
// with a reason; it is labelled as what it is, and an agent never dies of one.
func FuzzCreate(f *testing.F) {
	for _, g := range golden {
		body, err := os.ReadFile(filepath.Join("testdata", "request", g.file+".in.json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		def, err := taskdef.ParseStored(body)
		if err != nil {
			return
		}
		for _, c := range def.ContainerDefinitions {
			r, err := request("instance-1", specOf(def, c.Name))
			if err != nil {
				if err.Error() == "" {
					t.Fatal("refused without a reason")
				}
				continue
			}
			if r.Config.Labels[labelInstance] != "instance-1" || r.Config.Labels[labelTask] != testTask || odd.MatchString(r.Name) || r.Config.Labels[labelContainer] != c.Name {
				t.Fatalf("%q is labelled %v", r.Name, r.Config.Labels)
			}
		}
	})
}
