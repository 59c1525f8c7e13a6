package taskdef

import "slices"

// noShare stands at several members of a container.
const noShare = "a GPU is given whole, to one container at a time"

// box is the path of a container's members.
const box = "containerDefinitions[]."

func containerMembers() []Member {
	return slices.Concat([]Member{
		run("containerDefinitions", Objects),
		run(box+"name", String),
		run(box+"image", String),
		run(box+"cpu", Integer),
		run(box+"memory", Integer),
		run(box+"memoryReservation", Integer),
		run(box+"essential", Boolean),
		run(box+"entryPoint", Strings),
		run(box+"command", Strings),
		run(box+"user", String),
		run(box+"workingDirectory", String),
		run(box+"hostname", String),
		run(box+"privileged", Boolean),
		run(box+"readonlyRootFilesystem", Boolean),
		run(box+"interactive", Boolean),
		run(box+"pseudoTerminal", Boolean),
		run(box+"stopTimeout", Integer),
		run(box+"environment", Objects),
		run(box+"environment[].name", String),
		run(box+"environment[].value", String),
		run(box+"dockerLabels", StringMap),
		run(box+"dockerSecurityOptions", Strings),
		run(box+"dnsServers", Strings),
		run(box+"dnsSearchDomains", Strings),
		run(box+"extraHosts", Objects),
		run(box+"extraHosts[].hostname", String),
		run(box+"extraHosts[].ipAddress", String),
		run(box+"mountPoints", Objects),
		run(box+"mountPoints[].sourceVolume", String),
		run(box+"mountPoints[].containerPath", String),
		run(box+"mountPoints[].readOnly", Boolean),
		run(box+"systemControls", Objects),
		run(box+"systemControls[].namespace", String),
		run(box+"systemControls[].value", String),
		run(box+"ulimits", Objects),
		run(box+"ulimits[].name", String, can("core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice",
			"nofile", "nproc", "rss", "rtprio", "rttime", "sigpending", "stack")...),
		run(box+"ulimits[].softLimit", Integer),
		run(box+"ulimits[].hardLimit", Integer),
	}, portMembers(), logMembers(), orderMembers(), environmentFileMembers(box[:len(box)-1]), resourceMembers(box[:len(box)-1]),
		outsideMembers())
}

func portMembers() []Member {
	return []Member{
		run(box+"portMappings", Objects),
		run(box+"portMappings[].containerPort", Integer),
		run(box+"portMappings[].hostPort", Integer),
		run(box+"portMappings[].protocol", String, can("tcp", "udp")...),
		// A name and an application protocol mean something to Service Connect alone, which services refuse: here they
		// are labels, kept and shown.
		run(box+"portMappings[].name", String),
		run(box+"portMappings[].appProtocol", String, can("http", "http2", "grpc")...),
		run(box+"portMappings[].containerPortRange", String),
	}
}

func logMembers() []Member {
	drivers := append(can("json-file", "syslog", "journald", "gelf", "fluentd", "awslogs", "splunk", "none"),
		Choice{Text: "awsfirelens", State: Never, Why: noFirelens})
	return []Member{
		run(box+"logConfiguration", Object),
		run(box+"logConfiguration.logDriver", String, drivers...),
		run(box+"logConfiguration.options", StringMap),
		run(box+"logConfiguration.secretOptions", Objects),
		run(box+"logConfiguration.secretOptions[].name", String),
		run(box+"logConfiguration.secretOptions[].valueFrom", String),
		never(box+"firelensConfiguration", Object, noFirelens),
		never(box+"firelensConfiguration.type", String, noFirelens, can("fluentd", "fluentbit")...),
		never(box+"firelensConfiguration.options", StringMap, noFirelens),
	}
}

// orderMembers are those by which the containers of a task wait for, watch and share with each other.
func orderMembers() []Member {
	return []Member{
		run(box+"dependsOn", Objects),
		run(box+"dependsOn[].containerName", String),
		run(box+"dependsOn[].condition", String, can(ConditionStart, ConditionComplete, ConditionSuccess, ConditionHealthy)...),
		run(box+"startTimeout", Integer),
		run(box+"healthCheck", Object),
		run(box+"healthCheck.command", Strings),
		run(box+"healthCheck.interval", Integer),
		run(box+"healthCheck.timeout", Integer),
		run(box+"healthCheck.retries", Integer),
		run(box+"healthCheck.startPeriod", Integer),
		run(box+"restartPolicy", Object),
		run(box+"restartPolicy.enabled", Boolean),
		run(box+"restartPolicy.ignoredExitCodes", Integers),
		run(box+"restartPolicy.restartAttemptPeriod", Integer),
		run(box+"links", Strings),
		run(box+"volumesFrom", Objects),
		run(box+"volumesFrom[].sourceContainer", String),
		run(box+"volumesFrom[].readOnly", Boolean),
		run(box+"disableNetworking", Boolean),
	}
}

// outsideMembers are those for which somebody else's service is needed.
func outsideMembers() []Member {
	const domain = "instances do not join an Active Directory"
	return []Member{
		run(box+"secrets", Objects),
		run(box+"secrets[].name", String),
		run(box+"secrets[].valueFrom", String),
		run(box+"repositoryCredentials", Object),
		run(box+"repositoryCredentials.credentialsParameter", String),
		run(box+"versionConsistency", String, Choice{Text: "disabled"}, Choice{Text: "enabled", State: Never,
			Why: "each instance asks its registry what a tag is; name the image by its digest"}),
		never(box+"credentialSpecs", Strings, domain),
	}
}

func environmentFileMembers(at string) []Member {
	return []Member{
		run(at+".environmentFiles", Objects),
		run(at+".environmentFiles[].value", String),
		run(at+".environmentFiles[].type", String, can("s3")...),
	}
}

func resourceMembers(at string) []Member {
	at += ".resourceRequirements"
	return []Member{
		run(at, Objects),
		run(at+"[].type", String, Choice{Text: ResourceGPU},
			Choice{Text: "InferenceAccelerator", State: Never, Why: noElastic},
			Choice{Text: "NeuronDevice", State: Never, Why: noManaged}),
		run(at+"[].value", String),
		never(at+"[].sharingStrategy", Object, noShare),
		never(at+"[].sharingStrategy.nvidiaMps", Object, noShare),
		never(at+"[].sharingStrategy.nvidiaMps.memory", Integer, noShare),
		never(at+"[].sharingStrategy.nvidiaMps.maxComputePercent", Integer, noShare),
	}
}

func linuxMembers() []Member {
	const linux = box + "linuxParameters"
	capabilities := can("ALL", "AUDIT_CONTROL", "AUDIT_WRITE", "BLOCK_SUSPEND", "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH",
		"FOWNER", "FSETID", "IPC_LOCK", "IPC_OWNER", "KILL", "LEASE", "LINUX_IMMUTABLE", "MAC_ADMIN", "MAC_OVERRIDE", "MKNOD",
		"NET_ADMIN", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_ADMIN",
		"SYS_BOOT", "SYS_CHROOT", "SYS_MODULE", "SYS_NICE", "SYS_PACCT", "SYS_PTRACE", "SYS_RAWIO", "SYS_RESOURCE", "SYS_TIME",
		"SYS_TTY_CONFIG", "SYSLOG", "WAKE_ALARM")
	return []Member{
		run(linux, Object),
		run(linux+".initProcessEnabled", Boolean),
		run(linux+".capabilities", Object),
		run(linux+".capabilities.add", Strings, capabilities...),
		run(linux+".capabilities.drop", Strings, capabilities...),
		run(linux+".devices", Objects),
		run(linux+".devices[].hostPath", String),
		run(linux+".devices[].containerPath", String),
		run(linux+".devices[].permissions", Strings, can("read", "write", "mknod")...),
		run(linux+".sharedMemorySize", Integer),
		run(linux+".tmpfs", Objects),
		run(linux+".tmpfs[].containerPath", String),
		run(linux+".tmpfs[].size", Integer),
		run(linux+".tmpfs[].mountOptions", Strings),
		run(linux+".maxSwap", Integer),
		run(linux+".swappiness", Integer),
	}
}
