package taskdef

import "slices"

// Reasons that stand at several members.
const (
	noFargate   = "it is Fargate's; here tasks run on your own instances"
	noLattice   = "App Mesh and Envoy proxies are not run"
	noManaged   = "it is that of ECS Managed Instances"
	noNetworkFS = "mount the file system on the instances and name its folder in host.sourcePath"
	noFirelens  = "FireLens needs the ECS agent's log router; name a Docker log driver instead"
	noElastic   = "Elastic Inference no longer exists"
)

// registerMembers is the whole input of RegisterTaskDefinition. A member stands after the one it is in.
func registerMembers() []Member {
	return slices.Concat(taskMembers(), volumeMembers(), containerMembers(), linuxMembers())
}

func taskMembers() []Member {
	return []Member{
		run("family", String),
		run("cpu", String),
		run("memory", String),
		run("networkMode", String,
			Choice{Text: NetworkBridge}, Choice{Text: NetworkHost}, Choice{Text: NetworkNone},
			Choice{Text: NetworkAwsvpc, State: Never, Why: "there is no elastic network interface for a task"}),
		// FARGATE and MANAGED_INSTANCES may stand beside one that runs here; alone they are refused by a rule.
		run("requiresCompatibilities", Strings, can("EC2", "EXTERNAL", "FARGATE", "MANAGED_INSTANCES")...),
		run("placementConstraints", Objects),
		run("placementConstraints[].type", String, can("memberOf")...),
		run("placementConstraints[].expression", String),
		run("tags", Objects),
		run("tags[].key", String),
		run("tags[].value", String),
		run("runtimePlatform", Object),
		run("runtimePlatform.cpuArchitecture", String, can("X86_64", "ARM64")...),
		run("runtimePlatform.operatingSystemFamily", String, platforms()...),
		run("taskRoleArn", String),
		run("executionRoleArn", String),
		run("pidMode", String, Choice{Text: NamespaceHost}, Choice{Text: NamespaceTask}),
		run("ipcMode", String, Choice{Text: NamespaceHost}, Choice{Text: NamespaceNone}, Choice{Text: NamespaceTask}),
		never("ephemeralStorage", Object, noFargate),
		never("ephemeralStorage.sizeInGiB", Integer, noFargate),
		never("enableFaultInjection", Boolean, "there is no fault injection endpoint for tasks"),
		never("inferenceAccelerators", Objects, noElastic),
		never("inferenceAccelerators[].deviceName", String, noElastic),
		never("inferenceAccelerators[].deviceType", String, noElastic),
		never("proxyConfiguration", Object, noLattice),
		never("proxyConfiguration.type", String, noLattice, can("APPMESH")...),
		never("proxyConfiguration.containerName", String, noLattice),
		never("proxyConfiguration.properties", Objects, noLattice),
		never("proxyConfiguration.properties[].name", String, noLattice),
		never("proxyConfiguration.properties[].value", String, noLattice),
		never("trustedExecutionConfiguration", Object, noManaged),
		never("trustedExecutionConfiguration.isolationMode", String, noManaged,
			can("SHARED", "ISOLATED_SANDBOX", "CONFIDENTIAL_SANDBOX")...),
		never("trustedExecutionConfiguration.attestationPolicy", String, noManaged),
	}
}

func platforms() []Choice {
	choices := can("LINUX")
	for _, w := range []string{
		"WINDOWS_SERVER_2016_FULL", "WINDOWS_SERVER_2004_CORE", "WINDOWS_SERVER_2019_CORE", "WINDOWS_SERVER_2019_FULL",
		"WINDOWS_SERVER_20H2_CORE", "WINDOWS_SERVER_2022_CORE", "WINDOWS_SERVER_2022_FULL", "WINDOWS_SERVER_2025_CORE",
		"WINDOWS_SERVER_2025_FULL",
	} {
		choices = append(choices, Choice{Text: w, State: Never, Why: "the agent runs on Linux"})
	}
	return choices
}

func volumeMembers() []Member {
	const efs = "volumes[].efsVolumeConfiguration"
	const fsx = "volumes[].fsxWindowsFileServerVolumeConfiguration"
	const s3 = "volumes[].s3filesVolumeConfiguration"
	const docker = "volumes[].dockerVolumeConfiguration"
	return []Member{
		run("volumes", Objects),
		run("volumes[].name", String),
		run("volumes[].host", Object),
		run("volumes[].host.sourcePath", String),
		run(docker, Object),
		run(docker+".scope", String, can(ScopeTask, ScopeShared)...),
		run(docker+".autoprovision", Boolean),
		run(docker+".driver", String),
		run(docker+".driverOpts", StringMap),
		run(docker+".labels", StringMap),
		never("volumes[].configuredAtLaunch", Boolean, "EBS volumes are not made for tasks"),
		never(efs, Object, noNetworkFS),
		never(efs+".fileSystemId", String, noNetworkFS),
		never(efs+".rootDirectory", String, noNetworkFS),
		never(efs+".transitEncryption", String, noNetworkFS, can("ENABLED", "DISABLED")...),
		never(efs+".transitEncryptionPort", Integer, noNetworkFS),
		never(efs+".authorizationConfig", Object, noNetworkFS),
		never(efs+".authorizationConfig.accessPointId", String, noNetworkFS),
		never(efs+".authorizationConfig.iam", String, noNetworkFS, can("ENABLED", "DISABLED")...),
		never(fsx, Object, noNetworkFS),
		never(fsx+".fileSystemId", String, noNetworkFS),
		never(fsx+".rootDirectory", String, noNetworkFS),
		never(fsx+".authorizationConfig", Object, noNetworkFS),
		never(fsx+".authorizationConfig.credentialsParameter", String, noNetworkFS),
		never(fsx+".authorizationConfig.domain", String, noNetworkFS),
		never(s3, Object, noNetworkFS),
		never(s3+".fileSystemArn", String, noNetworkFS),
		never(s3+".accessPointArn", String, noNetworkFS),
		never(s3+".rootDirectory", String, noNetworkFS),
		never(s3+".transitEncryptionPort", Integer, noNetworkFS),
	}
}

// overrideMembers is the whole overrides member of RunTask and StartTask.
func overrideMembers() []Member {
	const box = "containerOverrides[]"
	return slices.Concat([]Member{
		run("cpu", String),
		run("memory", String),
		run("taskRoleArn", String),
		run("executionRoleArn", String),
		never("ephemeralStorage", Object, noFargate),
		never("ephemeralStorage.sizeInGiB", Integer, noFargate),
		never("inferenceAcceleratorOverrides", Objects, noElastic),
		never("inferenceAcceleratorOverrides[].deviceName", String, noElastic),
		never("inferenceAcceleratorOverrides[].deviceType", String, noElastic),
		run("containerOverrides", Objects),
		run(box+".name", String),
		run(box+".command", Strings),
		run(box+".environment", Objects),
		run(box+".environment[].name", String),
		run(box+".environment[].value", String),
		run(box+".cpu", Integer),
		run(box+".memory", Integer),
		run(box+".memoryReservation", Integer),
	}, environmentFileMembers(box), resourceMembers(box))
}
