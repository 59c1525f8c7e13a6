package query_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/longshore-run/longshore/shared/taskdef/query"
)

func TestMatch_ReadsAttributesAsECSDoes(t *testing.T) {
	edge := map[string]string{"role": "edge", "ecs.instance-type": "g2.xlarge", "ecs.availability-zone": "us-east-1a", "empty": "", "my color": "x", "note": "two words"}
	for expression, want := range map[string]bool{
		"attribute:role == edge":                                      true,
		"attribute:role==edge":                                        true,
		"attribute:role equals edge":                                  true,
		"attribute:role == core":                                      false,
		"attribute:role == Edge":                                      false,
		"attribute:none == edge":                                      false,
		"attribute:role != edge":                                      false,
		"attribute:role != core":                                      true,
		"attribute:none != edge":                                      true,
		"attribute:role not_equals core":                              true,
		"attribute:note == 'two words'":                               true,
		`attribute:note == "two words"`:                               true,
		`attribute:empty == ""`:                                       true,
		`attribute:none == ""`:                                        false,
		"attribute:ecs.instance-type =~ g2.*":                         true,
		"attribute:ecs.instance-type =~ g2":                           false,
		"attribute:ecs.instance-type =~ xlarge":                       false,
		"attribute:ecs.instance-type matches (g2|g3)\\..*":            true,
		"(attribute:ecs.instance-type =~ (g2|g3).*)":                  true,
		"attribute:ecs.instance-type =~ 'g2.*|t2.*'":                  true,
		"attribute:ecs.instance-type =~ t2.*|g2.*":                    true,
		"attribute:ecs.instance-type !~ g2.*":                         false,
		"attribute:ecs.instance-type not_matches t2.*":                true,
		"attribute:none =~ .*":                                        false,
		"attribute:none !~ .*":                                        true,
		"attribute:ecs.availability-zone in [us-east-1a, us-east-1b]": true,
		"attribute:ecs.availability-zone in [us-east-1b]":             false,
		"attribute:ecs.availability-zone in ['us-east-1a']":           true,
		"attribute:role not_in [edge]":                                false,
		"attribute:role !in [core,batch]":                             true,
		"attribute:none !in [core]":                                   true,
		"attribute:none in [core]":                                    false,
		"attribute:empty exists":                                      true,
		"attribute:none exists":                                       false,
		"attribute:none !exists":                                      true,
		"attribute:role not_exists":                                   false,
		"not attribute:role == core":                                  true,
		"!(attribute:role == edge)":                                   false,
		"not(attribute:role == edge)":                                 false,
		"not not attribute:role == edge":                              true,
		"attribute:role == edge and attribute:none exists":            false,
		"attribute:role == edge && attribute:empty exists":            true,
		"attribute:none exists or attribute:role == edge":             true,
		"attribute:none exists || attribute:none2 exists":             false,
		// and binds closer than or
		"attribute:role == edge or attribute:none exists and attribute:none exists":   true,
		"(attribute:role == edge or attribute:none exists) and attribute:none exists": false,
		"attribute:none exists and attribute:none exists or attribute:role == edge":   true,
		"not attribute:none exists and attribute:role == edge":                        true,
		"\n attribute:role\t==  edge \n":                                              true,
		"attribute:order == edge or attribute:android exists":                         false,
	} {
		e, err := query.Parse(expression)
		if err != nil {
			t.Errorf("Parse(%q): %v", expression, err)
			continue
		}
		if got := e.Match(edge); got != want {
			t.Errorf("%q is %t, want %t (read as %s)", expression, got, want, e)
		}
	}
}

func TestParse_NamesThePositionAndWhatIsAllowed(t *testing.T) {
	const operators = "==, !=, =~, !~, in, !in, exists, !exists"
	for expression, want := range map[string]string{
		"":                                           "at character 1: the expression ends where a subject should be: attribute:NAME",
		"   ":                                        "at character 4: the expression ends where a subject should be: attribute:NAME",
		"role == edge":                               `at character 1: "role" is not a subject; allowed is attribute:NAME`,
		"task:group == service:web":                  "at character 1: task:group is not supported; allowed is attribute:NAME",
		"runningTasksCount == 1":                     "at character 1: runningTasksCount is not supported; allowed is attribute:NAME",
		"not(agentConnected == true)":                "at character 5: agentConnected is not supported; allowed is attribute:NAME",
		"agentVersion == 1":                          "at character 1: agentVersion is not supported; allowed is attribute:NAME",
		"ec2InstanceId in [i-1]":                     "at character 1: ec2InstanceId is not supported; allowed is attribute:NAME",
		"registeredAt exists":                        "at character 1: registeredAt is not supported; allowed is attribute:NAME",
		"attribute:cpu > 4":                          "at character 15: the operator > is not supported; allowed are " + operators,
		"attribute:cpu greater_than 4":               "at character 15: the operator greater_than is not supported; allowed are " + operators,
		"attribute:cpu = 4":                          `at character 15: "=" is not an operator; allowed are ` + operators,
		"attribute:cpu is 4":                         `at character 15: "is" is not an operator; allowed are ` + operators,
		"attribute:cpu":                              "at character 14: the expression ends where an operator should be: " + operators,
		"attribute: == 4":                            `at character 1: "" is not the name of an attribute: up to 128 letters, digits and - _ . / \`,
		"attribute:a:b == 4":                         `at character 1: "a:b" is not the name of an attribute: up to 128 letters, digits and - _ . / \`,
		"attribute:a ==":                             "at character 15: the expression ends where a value should be",
		"attribute:a == )":                           `at character 16: ")" stands where a value should be`,
		"attribute:a == 'x":                          "at character 16: the quote that opens here does not close",
		"attribute:é == 'x":                          `at character 1: "é" is not the name of an attribute: up to 128 letters, digits and - _ . / \`,
		"attribute:a == é é":                         `at character 18: "é" stands after a complete expression; and, or are allowed`,
		"attribute:a =~ (b":                          "at character 16: \"(b\" is not a pattern: error parsing regexp: missing closing ): `(b`",
		"attribute:a =~ 'a)|(b'":                     "at character 16: \"a)|(b\" is not a pattern: error parsing regexp: unexpected ): `a)|(b`",
		"attribute:a in b":                           `at character 16: "b" stands where a list should be: [a, b]`,
		"attribute:a in []":                          `at character 17: "]" stands where a value should be`,
		"attribute:a in [b":                          "at character 18: the expression ends where the list opened at character 16 should go on or close",
		"attribute:a in [b c]":                       `at character 19: "c" stands where the list opened at character 16 should go on or close`,
		"attribute:a exists and":                     "at character 23: the expression ends where a subject should be: attribute:NAME",
		"(attribute:a exists":                        "at character 20: the expression ends where the parenthesis opened at character 1 should close",
		"attribute:a exists)":                        `at character 19: ")" stands after a complete expression; and, or are allowed`,
		"attribute:a exists exists":                  `at character 20: "e" stands after a complete expression; and, or are allowed`,
		"attribute:a == b c":                         `at character 18: "c" stands after a complete expression; and, or are allowed`,
		`attribute:a =~ x"y`:                         `at character 17: "\"" stands after a complete expression; and, or are allowed`,
		strings.Repeat("(", 60):                      "at character 51: more than 50 parentheses and negations in each other",
		strings.Repeat("x", 2001):                    "at character 2001: the expression is longer than 2000 characters",
		"attribute:a =~ " + strings.Repeat("x", 257): "at character 16: the pattern is longer than 256 characters",
		"attribute:" + strings.Repeat("n", 129) + " exists": `at character 1: "` + strings.Repeat("n", 60) + `"… is not the name of an attribute: up to 128 letters, digits and - _ . / \`,
	} {
		e, err := query.Parse(expression)
		if err == nil || err.Error() != want {
			t.Errorf("Parse(%.60q) = %v, %v; want %s", expression, e, err, want)
		}
		if _, ok := errors.AsType[*query.Error](err); !ok {
			t.Errorf("Parse(%.60q): the error is %T, want *query.Error", expression, err)
		}
	}
}

func TestParse_TakesTheLongestAllowed(t *testing.T) {
	pattern := strings.Repeat("é", 256)
	value := strings.Repeat("é", 2000-len("attribute:a == "))
	deep := strings.Repeat("(", 49) + "attribute:a exists" + strings.Repeat(")", 49)
	for _, text := range []string{"attribute:a =~ " + pattern, "attribute:a == " + value, deep} {
		if _, err := query.Parse(text); err != nil {
			t.Errorf("Parse(%.40q…): %v", text, err)
		}
	}
}

// drawExpr makes an expression as text, with what it must mean.
func drawExpr(t *rapid.T, depth int) (string, func(map[string]string) bool) {
	name := rapid.SampledFrom([]string{"a", "b", "c.d"}).Draw(t, "name")
	value := rapid.SampledFrom([]string{"x", "y", "z-1"}).Draw(t, "value")
	kinds := 4
	if depth > 0 {
		kinds = 7
	}
	kind := rapid.IntRange(0, kinds-1).Draw(t, "kind")
	switch kind {
	case 0:
		return "attribute:" + name + " == " + value, func(a map[string]string) bool { return has(a, name) && a[name] == value }
	case 1:
		return "attribute:" + name + " not_in [" + value + ", y]", func(a map[string]string) bool { return !has(a, name) || a[name] != value && a[name] != "y" }
	case 2:
		return "attribute:" + name + " exists", func(a map[string]string) bool { return has(a, name) }
	case 3:
		return "attribute:" + name + " =~ [xy]", func(a map[string]string) bool { return a[name] == "x" || a[name] == "y" }
	}
	left, l := drawExpr(t, depth-1)
	if kind == 4 {
		return "not (" + left + ")", func(a map[string]string) bool { return !l(a) }
	}
	right, r := drawExpr(t, depth-1)
	if kind == 5 {
		return "(" + left + " and " + right + ")", func(a map[string]string) bool { return l(a) && r(a) }
	}
	return "(" + left + " or " + right + ")", func(a map[string]string) bool { return l(a) || r(a) }
}

func has(a map[string]string, name string) bool {
	_, ok := a[name]
	return ok
}

func TestProperty_AnExpressionMeansWhatItSaysAndIsWrittenSo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, want := drawExpr(t, 3)
		e, err := query.Parse(text)
		if err != nil {
			t.Fatalf("Parse(%q): %v", text, err)
		}
		again, err := query.Parse(e.String())
		if err != nil || again.String() != e.String() {
			t.Fatalf("%q is written %q and read back as %v, %v", text, e, again, err)
		}
		attributes := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c.d"}), rapid.SampledFrom([]string{"x", "y", "z-1", ""})).Draw(t, "attributes")
		if got := e.Match(attributes); got != want(attributes) || again.Match(attributes) != got {
			t.Fatalf("%q is %t for %v, want %t", text, got, attributes, want(attributes))
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "attribute:a == b", "not(attribute:a =~ (x|y).* and attribute:b !in ['c', \"d\"]) or attribute:c !exists", "attribute:a == 'it\"s'", "((((", "attribute:\\ exists", "attribute:a =~ [)]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := query.Parse(text)
		if err != nil {
			bad, ok := errors.AsType[*query.Error](err)
			if !ok || bad.Position < 1 || bad.Position > len(text)+1 {
				t.Fatalf("the error of %q is %T %v", text, err, err)
			}
			return
		}
		written := fmt.Sprint(e)
		if len(written) > 2000 {
			return
		}
		again, err := query.Parse(written)
		if bad, ok := errors.AsType[*query.Error](err); ok && strings.Contains(bad.Message, "in each other") {
			return // written with a parenthesis more for each and, or
		}
		if err != nil || fmt.Sprint(again) != written {
			t.Fatalf("%q is written %q and read back as %v, %v", text, written, again, err)
		}
	})
}
