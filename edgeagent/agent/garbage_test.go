package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/internal/supervise"
)

// forged are definitions that registration refuses; whoever may write to the command
// queue can send them all the same.
func forged() map[string]string {
	secrets := make([]string, 3000)
	for n := range secrets {
		secrets[n] = fmt.Sprintf(`{"name":"S%d=","valueFrom":"arn:aws:secretsmanager::%d"}`, n, n)
	}
	many := make([]string, 40)
	for n := range many {
		many[n] = fmt.Sprintf(`{"name":"c%d","image":"busybox"}`, n)
	}
	one := func(members string) string {
		return `{"containerDefinitions":[{"name":"app","image":"busybox",` + members + `}]}`
	}
	return map[string]string{
		"null":                            `null`,
		"a list":                          `[]`,
		"no containers":                   `{"containerDefinitions":[null]}`,
		"nameless":                        `{"containerDefinitions":[{"image":"busybox"},{}]}`,
		"more than a report holds":        `{"containerDefinitions":[` + strings.Join(many, ",") + `]}`,
		"twice one name":                  `{"containerDefinitions":[{"name":"app","image":"busybox"},{"name":"app","image":"busybox"}]}`,
		"a container called pause":        `{"pidMode":"task","containerDefinitions":[{"name":"` + supervise.PauseName + `","image":"busybox"}]}`,
		"pause beside another":            `{"ipcMode":"task","pidMode":"task","containerDefinitions":[{"name":"app","image":"busybox"},{"name":"` + supervise.PauseName + `","image":"evil","essential":false}]}`,
		"waits for itself":                one(`"dependsOn":[{"containerName":"app","condition":"HEALTHY"}]`),
		"waits for pause":                 one(`"dependsOn":[{"containerName":"` + supervise.PauseName + `","condition":"NAMESPACE"}]`),
		"a circle":                        `{"containerDefinitions":[{"name":"app","image":"a","dependsOn":[{"containerName":"b","condition":"START"}]},{"name":"b","image":"b","volumesFrom":[{"sourceContainer":"app"}],"links":["app"]}]}`,
		"unknown condition":               one(`"dependsOn":[{"containerName":"app","condition":"NEVER"}]`),
		"roles that are none":             `{"taskRoleArn":"\u0000arn:aws:iam::x:role/","executionRoleArn":"` + strings.Repeat("../", 5000) + `","containerDefinitions":[{"name":"app","image":"busybox"}]}`,
		"thousands of secrets":            one(`"secrets":[` + strings.Join(secrets, ",") + `]`),
		"files of the machine":            one(`"environmentFiles":[{"type":"s3","value":"file:///etc/shadow"},{"type":"file","value":"arn:aws:s3:::"}]`),
		"login that is none":              one(`"repositoryCredentials":{"credentialsParameter":":::::::::"}`),
		"negative times":                  one(`"stopTimeout":-5,"startTimeout":-9223372036854775808,"restartPolicy":{"enabled":true,"restartAttemptPeriod":-1}`),
		"times without end":               one(`"stopTimeout":9223372036854775807,"startTimeout":9223372036854775807,"healthCheck":{"command":["CMD",""],"interval":9223372036854775807,"timeout":-1,"retries":-1}`),
		"ports that are none":             one(`"portMappings":[{"containerPort":-1,"hostPort":99999999},{"containerPortRange":"5-1"},{"containerPortRange":"x-y-z"},{"containerPortRange":"1-65535"}]`),
		"sizes that are none":             `{"cpu":"many","memory":"-1","containerDefinitions":[{"name":"app","image":"busybox","cpu":-1,"memory":-1,"memoryReservation":9223372036854775807}]}`,
		"links to nobody":                 one(`"links":["nobody:","::",""],"volumesFrom":[{"sourceContainer":"nobody"}],"mountPoints":[{"sourceVolume":"nothing","containerPath":""}]`),
		"a name that is a path":           `{"containerDefinitions":[{"name":"../../etc","image":"busybox"}]}`,
		"a network that is another's":     `{"networkMode":"container:other","pidMode":"container:other","ipcMode":"container:other","containerDefinitions":[{"name":"app","image":"busybox"}]}`,
		"log driver and options of chaos": one(`"logConfiguration":{"logDriver":"","options":{"":""},"secretOptions":[{},{"name":"","valueFrom":"arn:"}]}`),
	}
}

// What such a definition does to its own task is one thing: it ends, or runs as far as
// the engine lets it. The agent goes on, with the tasks it has and with new ones.
func TestGarbage_ForgedDefinitionsHurtTheirOwnTaskAlone(t *testing.T) {
	for name, definition := range forged() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.provider = provider()
				r.up()
				r.put(r.assign(1, 1))
				evil := r.assign(2, 1)
				evil.Definition = json.RawMessage(definition)
				r.put(evil)
				r.pass(time.Hour)
				if r.story(2) == "" {
					t.Error("nothing was said of it within an hour")
				}
				r.put(r.stop(2, 1), r.assign(3, 1))
				r.pass(time.Hour)
				if got := r.story(2); !strings.Contains(got, "STOPPED") && !strings.Contains(got, "REFUSED") {
					t.Errorf("after its stop: %q", got)
				}
				r.expect(1, "RUNNING")
				r.expect(3, "RUNNING")
				r.kill()
				r.up()
				r.pass(time.Minute)
				r.starts(1, 1, 1)
				r.down()
			})
		})
	}
}
