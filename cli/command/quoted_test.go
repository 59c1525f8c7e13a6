package command_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/cli/command"
)

// quoted are the commands of one program that pages tell people to run: in blocks,
// lines that begin with it or call it in the midst, and in running text what stands
// between ticks.
func quoted(t *testing.T, program string) (all []quotation) {
	t.Helper()
	root := filepath.Join("..", "..")
	pages := []string{filepath.Join(root, "README.md")}
	for _, dir := range []string{"runbooks", "checklists"} {
		found, err := filepath.Glob(filepath.Join(root, "docs", dir, "*.md"))
		if err != nil || len(found) == 0 {
			t.Fatal(dir, err)
		}
		pages = append(pages, found...)
	}
	begins := regexp.MustCompile(`(?:^|[;&|(]|\bdo|\|\s*xargs[^|]*?)\s*(` + program + ` [^;&|)]*)`)
	inline := regexp.MustCompile("`(" + program + " [^`]+)`")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range strings.Split(strings.ReplaceAll(string(text), "\\\n", " "), "```") {
			pattern := inline
			if i%2 == 1 {
				pattern = begins
			}
			for line := range strings.Lines(block) {
				if i%2 == 1 {
					line, _, _ = strings.Cut(line, " # ")
				}
				for _, m := range pattern.FindAllStringSubmatch(line, -1) {
					all = append(all, quotation{strings.TrimPrefix(page, root+"/"), strings.TrimSpace(m[1])})
				}
			}
		}
	}
	return all
}

type quotation struct{ page, text string }

// words splits a command as a shell does, as far as pages go.
func words(text string) (out []string) {
	for _, m := range regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+(?:"[^"]*")?`).FindAllString(text, -1) {
		if m == "--" { // what follows is another program's
			break
		}
		out = append(out, strings.Trim(m, `'"`))
	}
	return out
}

// A page that is read at night must not name a command that is not there.
func TestQuoted_EveryLongshoreCommandOfThePagesIsOne(t *testing.T) {
	all := quoted(t, "longshore")
	if len(all) < 40 {
		t.Fatalf("only %d commands found: the pages are not read as they are written", len(all))
	}
	for _, q := range all {
		args := words(q.text)[1:]
		root := command.Root()
		root.InitDefaultCompletionCmd(args...)
		root.InitDefaultHelpFlag()
		c, rest, err := root.Find(args)
		switch {
		case err != nil:
			t.Errorf("%s: %s: %v", q.page, q.text, err)
		case !c.HasParent() && args[0] != "--help":
			t.Errorf("%s: %s: no such command", q.page, q.text)
		case c.ParseFlags(rest) != nil:
			t.Errorf("%s: %s: %v", q.page, q.text, c.ParseFlags(rest))
		case c.HasSubCommands() && len(c.Flags().Args()) > 0:
			t.Errorf("%s: %s: %s has no such command", q.page, q.text, c.CommandPath())
		case !c.HasSubCommands() && len(args) > 2 && c.ValidateArgs(c.Flags().Args()) != nil:
			t.Errorf("%s: %s: %v", q.page, q.text, c.ValidateArgs(c.Flags().Args()))
		}
	}
}
