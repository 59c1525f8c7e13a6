package client

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The README says which versions were run; those are the pinned ones.
func TestREADME_NamesThePinnedVersions(t *testing.T) {
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	readme := read("README.md")
	for _, c := range []struct{ file, pattern, name string }{
		{"tools/clients/requirements.txt", `(?m)^boto3==(\S+)`, "boto3"},
		{"tools/clients/requirements.txt", `(?m)^ecs-deploy==(\S+)`, "ecs-deploy"},
		{"tools/clients/requirements.txt", `(?m)^apache-airflow==(\S+)`, "Apache Airflow"},
		{"tools/clients/requirements.txt", `(?m)^apache-airflow-providers-amazon==(\S+)`, "apache-airflow-providers-amazon"},
		{"tools/clients/package.json", `"@aws-sdk/client-ecs": "([^"]+)"`, "@aws-sdk/client-ecs"},
		{"tools/requirements.txt", `(?m)^awscli==(\S+)`, "AWS CLI"},
		{"go.mod", `aws-sdk-go-v2/service/ecs v(\S+)`, "aws-sdk-go-v2/service/ecs"},
	} {
		m := regexp.MustCompile(c.pattern).FindStringSubmatch(read(c.file))
		if m == nil {
			t.Errorf("%s pins no %s", c.file, c.name)
		} else if want := c.name + " " + m[1]; !strings.Contains(readme, want) {
			t.Errorf("README.md does not say %q, and %s pins it", want, c.file)
		}
	}
}
