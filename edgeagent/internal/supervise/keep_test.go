package supervise

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// rich is a definition in which everything that is supervised is said.
func rich() *taskdef.TaskDefinition {
	return &taskdef.TaskDefinition{Spec: taskdef.Spec{PidMode: taskdef.NamespaceTask, ContainerDefinitions: []taskdef.ContainerDefinition{
		{Name: "db", StopTimeout: new(7), StartTimeout: new(90), Environment: []taskdef.KeyValuePair{{Name: "PASSWORD", Value: "hunter2"}}},
		{Name: "log", StopTimeout: new(0), StartTimeout: new(1)},
		{Name: "app", Links: []string{"db:store"}, VolumesFrom: []taskdef.VolumeFrom{{SourceContainer: "db"}}, DependsOn: after("log", "START"),
			RestartPolicy: &taskdef.RestartPolicy{Enabled: new(true), IgnoredExitCodes: []int{0, 3}, RestartAttemptPeriod: new(60)}},
	}}}
}

// adopt is the task of def as it is rebuilt from containers that all run.
func adopt(def *taskdef.TaskDefinition) Task {
	var seen []Seen
	for _, c := range New("t", 1, def, 30*time.Second).Containers {
		seen = append(seen, Seen{Container: c.Name, RuntimeID: "r-" + c.Name, Running: true, StartedAt: start, Labels: map[string]string{KeptLabel: Kept(def, c.Name)}})
	}
	return Adopt("t", 1, seen, func(Seen) bool { return true }, 30*time.Second, start)
}

func TestKept_AnAdoptedTaskIsSupervisedAsItWas(t *testing.T) {
	def := rich()
	was, is := New("t", 1, def, 30*time.Second), adopt(def)
	for i, w := range was.Containers {
		c := is.Containers[i]
		if c.Name != w.Name || c.StopTimeout != w.StopTimeout || c.StartTimeout != w.StartTimeout || !slices.Equal(c.After, w.After) || !reflect.DeepEqual(c.Policy, w.Policy) {
			t.Errorf("adopted as %+v\nit was    %+v", c, w)
		}
	}
	is.want(Order{}, start)
	if got, want := verbs(&is, start), []string{"stop app", "stop db, stop log", "stop " + PauseName}; !slices.Equal(got, want) {
		t.Errorf("stopped in the order %q, want %q", got, want)
	}
}

func TestKept_APolicyRestartsWhatEndsAfterTheAdoptionAndNotBefore(t *testing.T) {
	def := rich()
	def.PidMode = ""
	end := Seen{Container: "app", RuntimeID: "r-app", ExitCode: new(1), StartedAt: start, FinishedAt: start.Add(time.Hour), Labels: map[string]string{KeptLabel: Kept(def, "app")}}
	tk := Observe(adopt(def), end, start.Add(time.Hour))
	if got := verbs(&tk, start.Add(time.Hour)); !slices.Equal(got, []string{"restart app"}) || tk.Status != task.Running || tk.Desired != task.DesiredRunning {
		t.Errorf("%q: %s", got, show(tk, nil))
	}
	ended := Adopt("t", 1, []Seen{end}, func(Seen) bool { return true }, time.Second, start.Add(time.Hour))
	if got := verbs(&ended, start.Add(time.Hour)); len(got) != 0 || ended.Status != task.Stopped {
		t.Errorf("of one that had ended: %q: %s", got, show(ended, nil))
	}
}

func TestKept_SaysNothingThatIsSecretAndNothingWhereNothingIsToBeSaid(t *testing.T) {
	def := rich()
	for _, name := range []string{"db", "log", "app", PauseName} {
		if got := Kept(def, name); got == "" || strings.Contains(got, "hunter2") || len(got) > maxKept {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := Kept(&taskdef.TaskDefinition{Spec: taskdef.Spec{ContainerDefinitions: []taskdef.ContainerDefinition{{Name: "app"}}}}, "app"); got != "" {
		t.Errorf("of a plain container %q", got)
	}
	// The longest that a definition can ask for is read back.
	long := taskdef.ContainerDefinition{Name: "app", RestartPolicy: &taskdef.RestartPolicy{Enabled: new(true)}}
	for i := range 50 {
		long.RestartPolicy.IgnoredExitCodes = append(long.RestartPolicy.IgnoredExitCodes, 1<<31+i)
	}
	for i := range 30 {
		long.Links = append(long.Links, strings.Repeat("x", 250)+string(rune('a'+i)))
	}
	var c Container
	if c.restore(Kept(&taskdef.TaskDefinition{Spec: taskdef.Spec{ContainerDefinitions: []taskdef.ContainerDefinition{long}}}, "app")); len(c.After) != 30 || c.Policy == nil || len(c.Policy.Ignored) != 50 {
		t.Errorf("read back as %+v", c)
	}
}

// FuzzKept has containers adopted by any label: none brings down the agent, makes a
// time negative, or says what the label of a definition could not.
func FuzzKept(f *testing.F) {
	for _, name := range []string{"db", "log", "app", PauseName} {
		f.Add(Kept(rich(), name))
	}
	for _, text := range []string{"", "{", `{"stopTimeout":-1}`, `{"stopTimeout":9223372036854775807}`, `{"restartPolicy":{}}`, `{"dependsOn":[{"name":"app","on":"NEVER"}]}`, `{"dependsOn":[{"name":"app","on":"START"}]}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		seen := Seen{Container: "app", RuntimeID: "c1", Running: true, StartedAt: start, Labels: map[string]string{KeptLabel: text}}
		tk := Adopt("t", 1, []Seen{seen}, func(Seen) bool { return true }, time.Second, start)
		c := tk.container("app")
		if c.StopTimeout < 0 || c.StartTimeout < 0 || c.Policy != nil && c.Policy.Period < 0 {
			t.Fatalf("%+v", c)
		}
		if _, err := json.Marshal(tk); err != nil {
			t.Fatal(err)
		}
		tk.want(Order{}, start)
		if verbs(&tk, start); tk.Status != task.Stopped {
			t.Fatalf("it cannot be stopped: %s", show(tk, nil))
		}
	})
}
