package strict

import (
	"slices"
	"strings"
	"testing"
)

// model is a service with one of everything that the checker knows.
const model = `{
"operations":{
 "Brew":{"input":{"shape":"BrewIn"},"output":{"shape":"BrewOut"},"errors":[{"shape":"Broken"},{"shape":"NoCup"}]},
 "DescribeTaskDefinition":{"output":{"shape":"Definition"}}},
"shapes":{
 "BrewIn":{"type":"structure","members":{}},
 "BrewOut":{"type":"structure","required":["cup"],"members":{
  "cup":{"shape":"Cup"},"cups":{"shape":"Cups"},"poured":{"shape":"Time"},"free":{"shape":"Any"},"filter":{"shape":"Filter"}}},
 "Cup":{"type":"structure","members":{"size":{"shape":"Size"},"grams":{"shape":"Int"},"grains":{"shape":"Long"},"heat":{"shape":"Double"},"full":{"shape":"Bool"},"label":{"shape":"Text"},"notes":{"shape":"Notes"}}},
 "Cups":{"type":"list","member":{"shape":"Cup"}},
 "Notes":{"type":"map","key":{"shape":"Text"},"value":{"shape":"Text"}},
 "Filter":{"type":"structure","union":true,"members":{"paper":{"shape":"Text"},"metal":{"shape":"Text"}}},
 "Any":{"type":"structure","document":true,"members":{}},
 "Size":{"type":"string","enum":["SMALL","LARGE"]},
 "Text":{"type":"string"},"Int":{"type":"integer"},"Long":{"type":"long"},"Double":{"type":"double"},"Bool":{"type":"boolean"},"Time":{"type":"timestamp"},
 "Definition":{"type":"structure","members":{"tags":{"shape":"Cups"}}},
 "Broken":{"type":"structure","fault":true,"members":{"message":{"shape":"Text"}}},
 "NoCup":{"type":"structure","members":{"message":{"shape":"Text"},"cups":{"shape":"Cups"}}}
}}`

func read(t *testing.T) *Model {
	t.Helper()
	m, err := Read(strings.NewReader(model))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const good = `{"cup":{"size":"LARGE","grams":20,"grains":9007199254740993,"heat":92.5,"full":true,"label":"","notes":{"by":"me"}},` +
	`"cups":[{"grams":1},{}],"poured":1700000000.123,"free":{"x":[null,1]},"filter":{"paper":"white"}}`

func TestCheck_PassesWhatTheModelHas(t *testing.T) {
	m := read(t)
	for _, c := range []struct {
		operation string
		status    int
		body      string
	}{
		{"Brew", 200, good},
		{"Brew", 200, `{"cup":{},"cups":[],"poured":1700000000}`},
		{"Brew", 400, `{"__type":"NoCup","message":"bring one","cups":[{"grams":0}]}`},
		{"Brew", 400, `{"__type":"coffee.v1#NoCup:http://coffee/","message":"bring one"}`},
		{"Brew", 500, `{"__type":"Broken","message":"steam"}`},
		{"Brew", 400, `{"__type":"ThrottlingException","message":"Throttling"}`},
		{"Roast", 400, `{"__type":"UnknownOperationException","message":"no"}`},
		{"DescribeTaskDefinition", 200, `{}`}, // its tags were not asked for
	} {
		if found := m.Check(c.operation, c.status, []byte(c.body)); len(found) > 0 {
			t.Errorf("%s %d %s: %q", c.operation, c.status, c.body, found)
		}
	}
}

func TestCheck_FindsEachPlantedViolation(t *testing.T) {
	m := read(t)
	for _, c := range []struct {
		name   string
		old    string // what of the good answer is replaced
		new    string
		expect string
	}{
		{"unknown member", `"full":true`, `"fill":true`, "cup.fill is no member of Cup"},
		{"unknown member of the answer", `"free":`, `"fee":`, "fee is no member of BrewOut"},
		{"member in another case", `"full":true`, `"Full":true`, "cup.Full is no member of Cup"},
		{"required member missing", `"cup":{`, `"free":{`, "cup is missing: BrewOut requires it"},
		{"enum outside the model", `"LARGE"`, `"HUGE"`, `cup.size is "HUGE", which is none of its choices`},
		{"empty enum", `"LARGE"`, `""`, `cup.size is "", which is none of its choices`},
		{"string as number", `"label":""`, `"label":5`, "cup.label is 5; it is a string"},
		{"integer as float", `"grams":20`, `"grams":20.0`, "cup.grams is 20.0; it is a whole number of 32 bits, written as one"},
		{"integer with exponent", `"grams":20`, `"grams":2e1`, "cup.grams is 2e1; it is a whole number of 32 bits, written as one"},
		{"integer as string", `"grams":20`, `"grams":"20"`, `cup.grams is "20"; it is a whole number of 32 bits, written as one`},
		{"integer too large", `"grams":20`, `"grams":3000000000`, "cup.grams is 3000000000; it is a whole number of 32 bits, written as one"},
		{"long as float", `9007199254740993`, `9.0`, "cup.grains is 9.0; it is a whole number of 64 bits, written as one"},
		{"double as string", `92.5`, `"92.5"`, `cup.heat is "92.5"; it is a number`},
		{"boolean as string", `"full":true`, `"full":"true"`, `cup.full is "true"; it is true or false`},
		{"null member", `"full":true`, `"full":null`, "cup.full is null; what is not there is left out"},
		{"null in a list", `[{"grams":1},{}]`, `[{"grams":1},null]`, "cups[1] is null; what is not there is left out"},
		{"fault deep in a list", `[{"grams":1},{}]`, `[{"grams":"1"},{}]`, `cups[0].grams is "1"; it is a whole number of 32 bits, written as one`},
		{"object where a list belongs", `[{"grams":1},{}]`, `{}`, "cups is {}; it is a list"},
		{"null where a list belongs", `[{"grams":1},{}]`, `null`, "cups is null; what is not there is left out"},
		{"list left out", `"cups":[{"grams":1},{}],`, ``, "cups is a list and is left out: clients index it, so an empty one is sent"},
		{"list where an object belongs", `{"by":"me"}`, `[]`, "cup.notes is []; it is an object"},
		{"map value of another type", `{"by":"me"}`, `{"by":1}`, `cup.notes["by"] is 1; it is a string`},
		{"time as text", `1700000000.123`, `"2023-11-14T22:13:20Z"`, `poured is "2023-11-14T22:13:20Z"; it is a number of seconds since 1970`},
		{"time in milliseconds", `1700000000.123`, `1700000000123`, "poured is 1700000000123; it is a number of seconds since 1970"},
		{"time of nothing", `1700000000.123`, `0`, "poured is 0; it is a number of seconds since 1970"},
		{"member given twice", `"full":true`, `"full":true,"full":true`, "cup.full stands twice"},
		{"union of two", `{"paper":"white"}`, `{"paper":"white","metal":"fine"}`, "filter has 2 members; Filter has exactly one"},
		{"union of none", `{"paper":"white"}`, `{}`, "filter has 0 members; Filter has exactly one"},
		{"no object", good, `[]`, "is []; it is an object"},
		{"no JSON", good, `<html>`, `is not JSON: "<html>"`},
		{"nothing", good, ``, `is not JSON: ""`},
	} {
		body := strings.Replace(good, c.old, c.new, 1)
		if body == good {
			t.Fatalf("%s: plants nothing", c.name)
		}
		found := m.Check("Brew", 200, []byte(body))
		if want := "Brew: " + c.expect; !slices.Contains(found, want) {
			t.Errorf("%s: found %q, not %q", c.name, found, want)
		}
		if one := c.name != "unknown member of the answer" && c.name != "required member missing"; one && len(found) != 1 {
			t.Errorf("%s: one fault is told as %q", c.name, found)
		}
	}
}

func TestCheck_FindsWhatIsWrongWithAnError(t *testing.T) {
	m := read(t)
	for _, c := range []struct {
		status int
		body   string
		expect string
	}{
		{400, `{"message":"no name"}`, "__type must name the error: clients know no other place for it"},
		{400, `{"__type":"","message":"no name"}`, "__type must name the error: clients know no other place for it"},
		{400, `{"code":"NoCup","message":"elsewhere"}`, "__type must name the error: clients know no other place for it"},
		{400, `{"__type":"ServiceNotFoundException","message":"another operation's"}`, "__type is ServiceNotFoundException, which the operation does not have"},
		{400, `{"__type":"NoCup"}`, "message must say what is wrong"},
		{400, `{"__type":"NoCup","message":""}`, "message must say what is wrong"},
		{404, `{"__type":"NoCup","message":"x"}`, "status 404 with NoCup; it is 400"},
		{500, `{"__type":"NoCup","message":"clients would send it again"}`, "status 500 with NoCup; it is 400"},
		{400, `{"__type":"Broken","message":"x"}`, "status 400 with Broken; it is 500"},
		{400, `{"__type":"NoCup","message":"x","saucer":1}`, "saucer is no member of NoCup"},
		{400, `{"__type":"AccessDeniedException","message":"x","saucer":1}`, "saucer is no member of AccessDeniedException"},
		{502, `<html>bad gateway</html>`, `is not JSON: "<html>bad gateway</html>"`},
		{302, `{}`, "status 302; success is 200"},
	} {
		found := m.Check("Brew", c.status, []byte(c.body))
		if want := "Brew: " + c.expect; len(found) != 1 || found[0] != want {
			t.Errorf("%d %s: found %q, not %q", c.status, c.body, found, want)
		}
	}
	if found := m.Check("Roast", 200, []byte(`{}`)); len(found) != 1 {
		t.Errorf("an operation that the model does not have: %q", found)
	}
}

func TestRead_RefusesHalfAModel(t *testing.T) {
	for _, half := range []string{`{}`, `{"operations":{"A":{"output":{"shape":"B"}}}}`, strings.Replace(model, `"Size":`, `"Sice":`, 1), `[`} {
		if _, err := Read(strings.NewReader(half)); err == nil {
			t.Errorf("%.40s is read", half)
		}
	}
}
