package command_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/cli/internal/exit"
)

const web = `family: web
networkMode: bridge
tags: [{key: team, value: a}]
containerDefinitions:
  - name: main
    image: registry.example/web:1
    memory: 64
    command: [serve]
    environment:
      - {name: MODE, value: fast}
      - {name: DB_PASSWORD, value: hunter2}
    portMappings: [{containerPort: 80, hostPort: 8080}]
  - name: side
    image: registry.example/side:1
    memoryReservation: 32
    essential: false
`

func TestRegister_MakesNoRevisionOfWhatIsTheSame(t *testing.T) {
	b := newBench(t)
	if out := b.must("definitions", "register", b.file("web.yaml", web)); out != "web:1\n" || !strings.Contains(b.err.String(), "web is a new family") {
		t.Errorf("says %s%s", out, b.err.String())
	}
	if out := b.must("definitions", "register", b.file("web.yaml", web)); out != "web:1\n" || !strings.Contains(b.err.String(), "web:1 is the same; nothing to register") {
		t.Errorf("says %s%s", out, b.err.String())
	}
	if out := b.must("definitions", "register", b.file("web.yaml", web), "--force"); out != "web:2\n" {
		t.Errorf("says %s", out)
	}
}

// A role by its name is registered as the ARN of the account: the same file changes nothing.
func TestRegister_ARoleByItsNameIsTheSame(t *testing.T) {
	b := newBench(t)
	file := b.file("web.yaml", web+"taskRoleArn: longshore/web\nexecutionRoleArn: longshore/pull\n")
	b.must("definitions", "register", file)
	if out := b.must("definitions", "register", file); out != "web:1\n" || !strings.Contains(b.err.String(), "web:1 is the same") {
		t.Errorf("says %s%s", out, b.err.String())
	}
}

func TestRegister_ShowsWhatDiffersButNoSecret(t *testing.T) {
	b := newBench(t)
	b.must("definitions", "register", b.file("web.yaml", web))
	changed := strings.NewReplacer("web:1", "web:2", "hunter2", "hunter3", "value: a}", "value: b}", "    command: [serve]\n", "", "- {name: MODE, value: fast}", "- {name: MODE, value: slow}").Replace(web)
	b.must("definitions", "register", b.file("web.yaml", changed), "--dry-run")
	golden(t, "definition-diff.txt", b.err.String())
	if strings.Contains(b.err.String(), "hunter") {
		t.Error("a secret was shown")
	}
	if out := b.must("definitions", "list", "web"); out != "DEFINITION\nweb:1\n" {
		t.Errorf("a dry run registered: %s", out)
	}
	b.must("definitions", "register", b.file("web.yaml", changed), "--reveal")
	if !strings.Contains(b.err.String(), `"hunter2" -> "hunter3"`) {
		t.Errorf("says %s", b.err.String())
	}
}

func TestRegister_NamesEveryFaultOfAFile(t *testing.T) {
	b := newBench(t)
	bad := b.file("bad.json", `{"family":"web","networkMode":"awsvpc","containerDefinitions":[{"name":"main","imag":"x","memory":"16"}]}`)
	if code := b.run("definitions", "register", bad); code != exit.Usage {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"imag", "memory"} {
		if !strings.Contains(b.err.String(), want) {
			t.Errorf("%s is not in %s", want, b.err.String())
		}
	}
	b.fails(exit.Usage, "holds no task definition", "definitions", "register", b.file("x.yaml", "- a\n- b\n"))
	b.fails(exit.Usage, "neither JSON nor YAML", "definitions", "register", b.file("y.yaml", "a: [\n"))
	b.fails(exit.NotFound, "there is no file nowhere.json; name one", "definitions", "register", "nowhere.json")
}

func TestRegister_ReadsStandardInput(t *testing.T) {
	b := newBench(t)
	b.in = web
	if out := b.must("definitions", "register", "-"); out != "web:1\n" {
		t.Errorf("says %s", out)
	}
	golden(t, "definition.yaml", b.must("definitions", "describe", "web"))
	if out := b.must("definitions", "list"); out != "FAMILY\napp\nweb\n" {
		t.Errorf("says %s", out)
	}
}

func TestRegister_TakesWhatWasDescribed(t *testing.T) {
	b := newBench(t)
	b.must("definitions", "register", b.file("web.yaml", web))
	for _, format := range []string{"yaml", "json"} {
		described := b.must("definitions", "describe", "web", "-o", format)
		if out := b.must("definitions", "register", b.file("described."+format, described)); out != "web:1\n" {
			t.Errorf("what is the same became %s", out)
		}
	}
	changed := strings.Replace(b.must("definitions", "describe", "web"), "registry.example/web:1", "registry.example/web:2", 1)
	if out := b.must("definitions", "register", b.file("changed.yaml", changed)); out != "web:2\n" || strings.Count(b.err.String(), "\n  ") != 1 {
		t.Errorf("says %s%s", out, b.err.String())
	}
}
