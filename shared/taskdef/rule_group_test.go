package taskdef_test

import (
	"strings"
	"testing"
)

func TestRule_HealthAndRestart(t *testing.T) {
	const at = "containerDefinitions[0]."
	judge(t, []verdict{
		{"no command", with(`"healthCheck":{"interval":5}`), []string{at + "healthCheck.command is required"}},
		{"bare command", with(`"healthCheck":{"command":["curl"]}`), []string{at + `healthCheck.command[0] is "curl"; allowed: CMD, CMD-SHELL, NONE`}},
		{"nothing to run", with(`"healthCheck":{"command":["CMD"]}`), []string{at + "healthCheck.command has nothing after CMD"}},
		{"bounds", with(`"healthCheck":{"command":["NONE"],"interval":4,"timeout":61,"retries":0,"startPeriod":301}`), []string{
			at + "healthCheck.interval is 4; allowed is 5 to 300", at + "healthCheck.timeout is 61; allowed is 2 to 60",
			at + "healthCheck.retries is 0; allowed is 1 to 10", at + "healthCheck.startPeriod is 301; allowed is 0 to 300",
		}},
		{"restart", with(`"restartPolicy":{"restartAttemptPeriod":59,"ignoredExitCodes":[` + strings.Repeat("1,", 50) + `1]}`), []string{
			at + "restartPolicy.enabled is required", at + "restartPolicy.ignoredExitCodes are 51; allowed are 50",
			at + "restartPolicy.restartAttemptPeriod is 59; allowed is 60 to 1800",
		}},
		{"startTimeout", with(`"startTimeout":-5`), []string{
			at + "startTimeout is -5; allowed is 0 to 86400",
		}},
	})
}

func TestRule_Group(t *testing.T) {
	const a, b = "containerDefinitions[0].", "containerDefinitions[1]."
	on := func(name, condition string) string {
		return `"dependsOn":[{"containerName":"` + name + `","condition":"` + condition + `"}]`
	}
	three := strings.TrimSuffix(two(on("b", "START"), on("c", "START"), ""), "]}") + `,{"name":"c","image":"x","memory":6,` + on("b", "START") + "}]}"
	diamond := strings.TrimSuffix(two("", on("a", "START"), ""), "]}") + `,{"name":"c","image":"x","memory":6,"dependsOn":[` +
		`{"containerName":"a","condition":"START"},{"containerName":"b","condition":"START"}]}]}`
	judge(t, []verdict{
		{"START", two("", on("a", "START"), ""), nil},
		{"itself", two(on("a", "START"), "", ""), []string{a + "dependsOn[0].containerName names its own container"}},
		{"nobody", two(on("c", "START"), "", ""), []string{a + `dependsOn[0].containerName names no container of the task: "c"`}},
		{"without members", two(`"dependsOn":[{}]`, "", ""), []string{a + "dependsOn[0].condition is required", a + "dependsOn[0].containerName is required"}},
		{"one twice", two("", `"dependsOn":[{"containerName":"a","condition":"START"},{"containerName":"a","condition":"START"}]`, ""), []string{
			b + `dependsOn[1].containerName repeats "a"`,
		}},
		{"unknown condition", two("", on("a", "READY"), ""), []string{b + `dependsOn[0].condition is "READY"; allowed: START, COMPLETE, SUCCESS, HEALTHY`}},
		{"the end of an essential container", two("", on("a", "SUCCESS"), ""), []string{
			b + `dependsOn[0].condition is SUCCESS, but "a" is essential: its end would end the task`,
		}},
		{"the end of another", two(`"essential":false`, on("a", "COMPLETE"), ""), nil},
		{"health without a check", two("", on("a", "HEALTHY"), ""), []string{
			b + `dependsOn[0].condition is HEALTHY, but "a" has no healthCheck`,
		}},
		{"a check that is none", two(`"healthCheck":{"command":["NONE"]}`, on("a", "HEALTHY"), ""), []string{
			b + `dependsOn[0].condition is HEALTHY, but "a" has no healthCheck`,
		}},
		{"the health of one that is checked", two(`"healthCheck":{"command":["CMD","x"]}`, on("a", "HEALTHY"), ""), nil},
		{"the end of one that is started again", two(`"essential":false,"restartPolicy":{"enabled":true}`, on("a", "SUCCESS"), ""), nil},
		{"a circle of two", two(on("b", "START"), on("a", "START"), ""), []string{b + "dependsOn[0].containerName closes a circle: a → b → a"}},
		{"a circle below another container", three, []string{"containerDefinitions[2].dependsOn[0].containerName closes a circle: b → c → b"}},
		{"two ways to one", diamond, nil},
		{"a circle by link and volume", two(`"links":["b:db"]`, `"volumesFrom":[{"sourceContainer":"a"}]`, ""), []string{
			b + "volumesFrom[0].sourceContainer closes a circle: a → b → a",
		}},
		{"volumes of nobody", two(`"volumesFrom":[{},{"sourceContainer":"c"},{"sourceContainer":"a"}]`, "", ""), []string{
			a + "volumesFrom[0].sourceContainer is required", a + `volumesFrom[1].sourceContainer names no container of the task: "c"`,
			a + "volumesFrom[2].sourceContainer names its own container",
		}},
		{"links without a network", two(`"links":["b"],"disableNetworking":true,"portMappings":[{"containerPort":80}]`, "", ""), []string{
			a + "portMappings must be empty with disableNetworking", a + "links must be empty with disableNetworking",
		}},
		{"links and volumes", two(`"links":["b:store"],"volumesFrom":[{"sourceContainer":"b","readOnly":true}]`, "", ""), nil},
		{"links", two(`"links":["b:","c","a"]`, "", `"networkMode":"host"`), []string{
			a + "links need network mode bridge; it is host", a + `links[0] is "b:"; allowed is NAME or NAME:ALIAS`,
			a + `links[1] names no container of the task: "c"`, a + "links[2] names its own container",
		}},
	})
}

func TestRule_PlacementAndPlatform(t *testing.T) {
	constraint := func(s string) string { return beside(`"placementConstraints":[` + s + `]`) }
	const one = `{"type":"memberOf","expression":"attribute:a exists"}`
	judge(t, []verdict{
		{"all well", constraint(one), nil},
		{"eleven", constraint(one + strings.Repeat(","+one, 10)), []string{"placementConstraints are 11; allowed are 10"}},
		{"empty", constraint(`{}`), []string{"placementConstraints[0].type is required", "placementConstraints[0].expression is required"}},
		{"type", constraint(`{"type":"distinctInstance","expression":"attribute:a exists"}`), []string{`placementConstraints[0].type is "distinctInstance"; allowed: memberOf`}},
		{"syntax", constraint(`{"type":"memberOf","expression":"attribute:a = b"}`), []string{
			`placementConstraints[0].expression cannot be used: at character 13: "=" is not an operator; allowed are ==, !=, =~, !~, in, !in, exists, !exists`,
		}},
		{"Linux", beside(`"runtimePlatform":{"operatingSystemFamily":"LINUX","cpuArchitecture":"ARM64"}`), nil},
		{"Windows", beside(`"runtimePlatform":{"operatingSystemFamily":"WINDOWS_SERVER_2022_CORE"}`), []string{
			`runtimePlatform.operatingSystemFamily "WINDOWS_SERVER_2022_CORE" is not supported: the agent runs on Linux`,
		}},
		{"EC2 and more", beside(`"requiresCompatibilities":["EC2","FARGATE"]`), nil},
		{"own machines", beside(`"requiresCompatibilities":["EXTERNAL"]`), nil},
		{"Fargate alone", beside(`"requiresCompatibilities":["FARGATE"]`), []string{
			`requiresCompatibilities names "FARGATE" alone, which is not supported: tasks run on your own instances; allowed: EC2, EXTERNAL`,
		}},
		{"Managed Instances and Fargate", beside(`"requiresCompatibilities":["FARGATE","MANAGED_INSTANCES"]`), []string{
			`requiresCompatibilities names "FARGATE, MANAGED_INSTANCES" alone, which is not supported: tasks run on your own instances; allowed: EC2, EXTERNAL`,
		}},
		{"one twice", beside(`"requiresCompatibilities":["EC2","EC2"]`), []string{`requiresCompatibilities[1] repeats "EC2"`}},
	})
}
