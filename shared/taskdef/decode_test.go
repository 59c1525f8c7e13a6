package taskdef_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/shared/taskdef"
)

// with is the least definition with more members in its only container, and of its own.
func with(members string, more ...string) string {
	return `{"family":"f","containerDefinitions":[{"name":"a","image":"busybox","memory":64` + comma(members) + `}]` + comma(strings.Join(more, ",")) + `}`
}

// beside is the least definition with more members of its own.
func beside(members string) string {
	return `{"family":"f","containerDefinitions":[{"name":"a","image":"busybox","memory":64}]` + comma(members) + `}`
}

// two is a definition of two containers, a and b, with more members in each.
func two(a, b, more string) string {
	const box = `"image":"busybox","memory":64`
	return `{"family":"f","containerDefinitions":[{"name":"a",` + box + comma(a) + `},{"name":"b",` + box + comma(b) + `}]` +
		comma(more) + `}`
}

func comma(members string) string {
	if members == "" {
		return ""
	}
	return "," + members
}

// verdict is a document and every fault that Decode finds in it, in order; none means that it registers.
type verdict struct {
	sentence string
	body     string
	faults   []string
}

func judge(t *testing.T, verdicts []verdict) {
	t.Helper()
	for _, v := range verdicts {
		t.Run(v.sentence, func(t *testing.T) {
			_, err := taskdef.Decode([]byte(v.body))
			want := ""
			for _, f := range v.faults {
				want += f + "\n"
			}
			if got := lines(err); got != want {
				t.Errorf("Decode(%.300s)\ngot:\n%swant:\n%s", v.body, got, want)
			}
		})
	}
}

func TestDecode_TellsWhatIsNotADocument(t *testing.T) {
	deep := strings.Repeat("[", 30)
	judge(t, []verdict{
		{"nothing", ``, []string{"the document ends too early"}},
		{"half of one", `{"family":"f"`, []string{"the document ends too early"}},
		{"a list", `[]`, []string{"the document is a list; allowed is an object"}},
		{"null", `null`, []string{"the document is null; allowed is an object"}},
		{"two of them", `{} {}`, []string{"the document has more after its end"}},
		{"not JSON", `{"family":f}`, []string{"the document is not JSON at byte 10: invalid character '}' in literal false (expecting 'a')"}},
		{"nested without end", `{"family":` + deep, []string{"the document nests deeper than 24 levels"}},
		{"huge", `{"family":"` + strings.Repeat("f", 300_000) + `"}`, []string{"the document is 300013 bytes long; allowed are 262144"}},
	})
}

func TestDecode_NamesAMemberThatECSDoesNotHave(t *testing.T) {
	judge(t, []verdict{
		{"in the definition", beside(`"foo":1`), []string{"foo is not a member of RegisterTaskDefinition"}},
		{"in a container", with(`"foo":{"bar":1}`), []string{"containerDefinitions[0].foo is not a member of containerDefinitions"}},
		{"in the second container", two("", `"foo":[]`, ""), []string{"containerDefinitions[1].foo is not a member of containerDefinitions"}},
		{"deep down", with(`"linuxParameters":{"capabilities":{"ad":["ALL"]}}`), []string{
			"containerDefinitions[0].linuxParameters.capabilities.ad is not a member of containerDefinitions[].linuxParameters.capabilities; did you mean add?",
		}},
		{"in another case", with(`"Command":["x"]`), []string{"containerDefinitions[0].Command is not a member of containerDefinitions; did you mean command?"}},
		{"in another case and of another type", `{"FAMILY":5}`, []string{"FAMILY is not a member of RegisterTaskDefinition; did you mean family?"}},
		{"one letter off", with(`"enviroment":[]`), []string{"containerDefinitions[0].enviroment is not a member of containerDefinitions; did you mean environment?"}},
		{"one letter replaced", with(`"commamd":[]`), []string{"containerDefinitions[0].commamd is not a member of containerDefinitions; did you mean command?"}},
		{"two letters off", with(`"cxmxand":[],"commandos":[]`), []string{
			"containerDefinitions[0].cxmxand is not a member of containerDefinitions",
			"containerDefinitions[0].commandos is not a member of containerDefinitions",
		}},
		{"inside a member", with(`"healthCheck":{"command":["CMD","x"],"period":3}`), []string{
			"containerDefinitions[0].healthCheck.period is not a member of containerDefinitions[].healthCheck",
		}},
		{"with a name that is no name", beside(`"a.b":1`), []string{`"a.b" is not a member of RegisterTaskDefinition`}},
		{"even null", beside(`"foo":null`), []string{"foo is not a member of RegisterTaskDefinition"}},
		{"given twice", beside(`"cpu":"256","cpu":"512"`), []string{"cpu is given twice"}},
		{"a label given twice", with(`"dockerLabels":{"x":"1","x":"2"}`), []string{"containerDefinitions[0].dockerLabels.x is given twice"}},
	})
}

func TestDecode_NamesWhatCameAndWhatIsAllowed(t *testing.T) {
	judge(t, []verdict{
		{"number for string", beside(`"cpu":256`), []string{"cpu is the number 256; allowed is a string"}},
		{"string for number", with(`"memoryReservation":"32"`), []string{`containerDefinitions[0].memoryReservation is the string "32"; allowed is a whole number`}},
		{"fraction", with(`"cpu":1.5`), []string{"containerDefinitions[0].cpu is the number 1.5; allowed is a whole number between -2147483648 and 2147483647"}},
		{"more than 32 bits", with(`"cpu":2147483648`), []string{"containerDefinitions[0].cpu is the number 2147483648; allowed is a whole number between -2147483648 and 2147483647"}},
		{"string for boolean", with(`"essential":"true"`), []string{`containerDefinitions[0].essential is the string "true"; allowed is true or false`}},
		{"string for list", with(`"command":"ls -l"`), []string{`containerDefinitions[0].command is the string "ls -l"; allowed is a list of strings`}},
		{"number in list", with(`"command":["sleep",5]`), []string{"containerDefinitions[0].command[1] is the number 5; allowed is a string"}},
		{"null in list", with(`"command":[null]`), []string{"containerDefinitions[0].command[0] is null; allowed is a string"}},
		{"object for list", with(`"environment":{"A":"b"}`), []string{"containerDefinitions[0].environment is an object; allowed is a list of objects"}},
		{"string in list of objects", with(`"environment":["A=b"]`), []string{`containerDefinitions[0].environment[0] is the string "A=b"; allowed is an object`}},
		{"list for object", with(`"linuxParameters":[]`), []string{"containerDefinitions[0].linuxParameters is a list; allowed is an object"}},
		{"boolean in map", with(`"dockerLabels":{"x":true}`), []string{"containerDefinitions[0].dockerLabels.x is true; allowed is a string"}},
		{"string in list of numbers", with(`"restartPolicy":{"enabled":true,"ignoredExitCodes":["0"]}`), []string{
			`containerDefinitions[0].restartPolicy.ignoredExitCodes[0] is the string "0"; allowed is a whole number`,
		}},
		{"sixty characters are not", with(`"cpu":"` + strings.Repeat("x", 60) + `"`), []string{
			`containerDefinitions[0].cpu is the string "` + strings.Repeat("x", 60) + `"; allowed is a whole number`,
		}},
		{"long strings are shortened", with(`"cpu":"` + strings.Repeat("x", 99) + `"`), []string{
			`containerDefinitions[0].cpu is the string "` + strings.Repeat("x", 60) + `"…; allowed is a whole number`,
		}},
	})
}

func TestDecode_TellsEverythingAtOnceInTheOrderOfTheDocument(t *testing.T) {
	judge(t, []verdict{{
		"many faults",
		`{"networkMode":"awsvpc","colour":"red","containerDefinitions":[{"name":"a","image":"x","memory":3,"essential":false}],"family":"f"}`,
		[]string{
			`networkMode "awsvpc" is not supported: there is no elastic network interface for a task`,
			"colour is not a member of RegisterTaskDefinition",
			"containerDefinitions has no essential container; at least one must be essential",
			"containerDefinitions[0].memory is 3; allowed is 6 to 1073741824",
		},
	}})
}

func TestFaults_TextIsBounded(t *testing.T) {
	var members []string
	for i := range 500 {
		members = append(members, fmt.Sprintf(`"m%d":1`, i))
	}
	_, err := taskdef.Decode([]byte(beside(strings.Join(members, ","))))
	text := err.Error()
	if !strings.HasSuffix(text, "; and 460 more") || len(text) > 4000 {
		t.Errorf("text of %d bytes: …%s", len(text), text[max(0, len(text)-80):])
	}
}

// A client that sends back what Describe showed it asks for nothing by it.
func TestDecode_ARefusedMemberThatAsksForNothingRegisters(t *testing.T) {
	judge(t, []verdict{
		{"empty lists", with(`"volumesFrom":[],"links":[],"secrets":[],"environmentFiles":[],"credentialSpecs":[],"firelensConfiguration":{}`), nil},
		{"null", with(`"healthCheck":null,"startTimeout":null,"repositoryCredentials":null`), nil},
		{"false", with(`"disableNetworking":false`), nil},
		{"an empty string", beside(`"taskRoleArn":"","executionRoleArn":""`), nil},
		{"false of the task", beside(`"enableFaultInjection":false`), nil},
	})
}

// Every member that is not Run is refused when it is used, by its own path and with its own reason.
func TestDecode_RefusesEveryMemberOfTheTableThatIsNotRun(t *testing.T) {
	samples := map[taskdef.Type]string{
		taskdef.Object: `{"?":1}`, taskdef.Objects: `[{}]`, taskdef.Strings: `["x"]`, taskdef.Integers: `[1]`,
		taskdef.StringMap: `{"k":"v"}`, taskdef.String: `"x"`, taskdef.Integer: `1`, taskdef.Boolean: `true`,
	}
	seen := 0
	for _, m := range taskdef.Members() {
		if m.State == taskdef.Run {
			continue
		}
		sample := samples[m.Type]
		if len(m.Choices) > 0 {
			sample = fmt.Sprintf("%q", m.Choices[0].Text)
		}
		body, path := document(m.Path, sample)
		_, err := taskdef.Decode([]byte(body))
		// Of what is inside a refused member only the outermost is told.
		want, told := path+" is not supported", false
		for line := range strings.Lines(lines(err)) {
			outer, _, _ := strings.Cut(line, " is not supported")
			told = told || strings.HasPrefix(line, want) && strings.Contains(line, m.Why) ||
				strings.Contains(line, " is not supported") && strings.HasPrefix(path, outer)
		}
		if !told {
			t.Errorf("%s of %s: want %q and %q in:\n%s", m.Path, body, want, m.Why, lines(err))
		}
		seen++
	}
	if seen < 40 {
		t.Errorf("only %d members are refused; the table has lost some", seen)
	}
}

// document puts a value at a path of the table and nothing else.
func document(path, value string) (body, at string) {
	parts := strings.Split(path, ".")
	body = value
	for _, part := range slices.Backward(parts) {
		name, list := strings.CutSuffix(part, "[]")
		if list {
			body = "[" + body + "]"
		}
		body = fmt.Sprintf("{%q:%s}", name, body)
	}
	return body, strings.ReplaceAll(path, "[]", "[0]")
}

func TestDecode_RefusesEveryChoiceOfTheTableThatIsNotRun(t *testing.T) {
	seen := 0
	for _, m := range taskdef.Members() {
		for _, c := range m.Choices {
			if m.State != taskdef.Run || c.State == taskdef.Run {
				continue
			}
			body, path := document(m.Path, fmt.Sprintf("%q", c.Text))
			if m.Type == taskdef.Strings {
				t.Fatalf("%s: extend this test to lists", m.Path)
			}
			_, err := taskdef.Decode([]byte(body))
			if want := fmt.Sprintf("%s %q is not supported", path, c.Text); !strings.Contains(lines(err), want) {
				t.Errorf("want %q in:\n%s", want, lines(err))
			}
			seen++
		}
	}
	if seen < 10 {
		t.Errorf("only %d choices are refused; the table has lost some", seen)
	}
}

func TestDecode_NamesTheAllowedValuesOfEveryMemberThatHasThem(t *testing.T) {
	seen := 0
	for _, m := range taskdef.Members() {
		if len(m.Choices) == 0 {
			continue
		}
		value := `"nonsense"`
		body, path := document(m.Path, value)
		if m.Type == taskdef.Strings {
			body, path = document(m.Path, "["+value+"]")
			path += "[0]"
		}
		_, err := taskdef.Decode([]byte(body))
		want := path + ` is "nonsense"; allowed: `
		for _, c := range m.Choices {
			if c.State == taskdef.Run {
				want += c.Text
				break
			}
		}
		if !strings.Contains(lines(err), want) {
			t.Errorf("want %q in:\n%s", want, lines(err))
		}
		seen++
	}
	if seen < 18 {
		t.Errorf("only %d members have choices; the table has lost some", seen)
	}
}
