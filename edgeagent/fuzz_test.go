package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzReadConfig: whatever stands in the settings' file, the agent starts with
// settings that hold, or says which line or setting is wrong.
func FuzzReadConfig(f *testing.F) {
	const good = "LONGSHORE_REPORTS_QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/0/r\nLONGSHORE_HEARTBEATS_QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/0/h\n"
	for _, more := range []string{
		"", "# a comment\n; another\n\nLONGSHORE_CLUSTER=\"edge\"\n", "LONGSHORE_CLUSTER=../etc\n", "LONGSHORE_INSTANCE_ATTRIBUTES=a=b,longshore.x=1,=,c\n",
		"LONGSHORE_RESERVED_PORTS=0,65536\n", "DOCKER_HOST=ssh://x\n", "LONGSHORE_CPU=1e3\nno line\n", "LONGSHORE_DATA_DIR=\x00\n", "\xff=\xfe\n",
	} {
		f.Add(good + more)
	}
	file := filepath.Join(f.TempDir(), "agent.env") // of this process alone
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "AWS_") { // those go into the environment of this process
			return
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := readConfig([]string{file}, func(string) (string, bool) { return "", false }, nil)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.Contains(line, "LONGSHORE_") && !strings.Contains(line, "DOCKER_HOST") && !strings.Contains(line, "agent.env") && !strings.Contains(line, "token too long") {
					t.Fatalf("a fault that names nothing: %q", line)
				}
			}
			return
		}
		if !clusterName.MatchString(c.Cluster) || regionOf(c.ReportsQueueURL) == "" && c.ReportsQueueURL == "" || c.CPU < 0 || c.CleanupWait <= 0 {
			t.Fatalf("%+v", c.Agent)
		}
		for _, a := range c.Attributes {
			if strings.HasPrefix(a, "longshore.") || !strings.Contains(a, "=") {
				t.Fatalf("attribute %q", a)
			}
		}
	})
}
