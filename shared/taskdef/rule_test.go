package taskdef_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestRule_NamesAndCounts(t *testing.T) {
	const name = "is %s; allowed are letters, digits, hyphens and underscores"
	family := func(s string) string {
		return `{"family":"` + s + `","containerDefinitions":[{"name":"a","image":"x","memory":6}]}`
	}
	var eleven []string
	for i := range 11 {
		eleven = append(eleven, fmt.Sprintf(`{"name":"c%d","image":"x","memory":6}`, i))
	}
	judge(t, []verdict{
		{"least definition", family("f"), nil},
		{"longest family", family(strings.Repeat("f", 255)), nil},
		{"no family", `{"containerDefinitions":[{"name":"a","image":"x","memory":6}]}`, []string{"family is required"}},
		{"family too long", family(strings.Repeat("f", 256)), []string{"family is 256 characters long; allowed are 255"}},
		{"family with a dot", family("a.b"), []string{"family " + fmt.Sprintf(name, `"a.b"`)}},
		{"no containers", `{"family":"f"}`, []string{"containerDefinitions is required: at least one container"}},
		{"an empty list of containers", `{"family":"f","containerDefinitions":[]}`, []string{"containerDefinitions is required: at least one container"}},
		{"eleven containers", `{"family":"f","containerDefinitions":[` + strings.Join(eleven, ",") + `]}`, []string{"containerDefinitions are 11; allowed are 10"}},
		{"ten containers", `{"family":"f","containerDefinitions":[` + strings.Join(eleven[1:], ",") + `]}`, nil},
		{"no essential container", with(`"essential":false`), []string{"containerDefinitions has no essential container; at least one must be essential"}},
		{"one essential of two", two(`"essential":false`, "", ""), nil},
		{"a nameless container without image", `{"family":"f","containerDefinitions":[{"memory":6}]}`, []string{
			"containerDefinitions[0].name is required", "containerDefinitions[0].image is required",
		}},
		{"a container name with a space", strings.Replace(beside(""), `"a"`, `"a b"`, 1), []string{"containerDefinitions[0].name " + fmt.Sprintf(name, `"a b"`)}},
		{"one name twice", strings.Replace(two("", "", ""), `"name":"b"`, `"name":"a"`, 1), []string{`containerDefinitions[1].name repeats "a"`}},
		{"64 KiB and more", with(`"command":["` + strings.Repeat("x", 65_536) + `"]`), []string{"the document is 65633 bytes long; allowed are 65536"}},
	})
}

func TestRule_Image(t *testing.T) {
	image := func(s string) string { return strings.Replace(beside(""), `"busybox"`, `"`+s+`"`, 1) }
	digest := strings.Repeat("0123456789abcdef", 4)
	judge(t, []verdict{
		{"tag", image("registry.example:5000/a/b_c:1.2-x"), nil},
		{"digest", image("a/b@sha256:" + digest), nil},
		{"short digest", image("a@sha256:12"), []string{`containerDefinitions[0].image has the digest "sha256:12"; allowed is sha256: and 64 hexadecimal digits`}},
		{"other digest", image("a@md5:" + digest), []string{`containerDefinitions[0].image has the digest "md5:0123456789abcdef0123456789abcdef0123456789abcdef01234567"…; allowed is sha256: and 64 hexadecimal digits`}},
		{"space", image("a b"), []string{`containerDefinitions[0].image is "a b"; allowed are letters, digits and _ - . / : #`}},
		{"too long", image(strings.Repeat("i", 256)), []string{"containerDefinitions[0].image is 256 characters long before its digest; allowed are 255"}},
	})
}

func TestRule_Sizes(t *testing.T) {
	sized := func(members, task string) string {
		return `{"family":"f","containerDefinitions":[{"name":"a","image":"x"` + comma(members) + `}]` + comma(task) + `}`
	}
	const none = "containerDefinitions[0].memory or memoryReservation is required where the task has no memory of its own"
	judge(t, []verdict{
		{"a limit", sized(`"memory":6`, ""), nil},
		{"a reservation", sized(`"memoryReservation":6`, ""), nil},
		{"the task's memory", sized("", `"memory":"512"`), nil},
		{"no memory anywhere", sized("", ""), []string{none}},
		{"memory 0", sized(`"memory":0`, ""), []string{none}},
		{"limit below 6 MiB", sized(`"memory":5`, ""), []string{"containerDefinitions[0].memory is 5; allowed is 6 to 1073741824"}},
		{"reservation below 6 MiB", sized(`"memoryReservation":4`, ""), []string{"containerDefinitions[0].memoryReservation is 4; allowed is 6 to 1073741824"}},
		{"limit equal to the reservation", sized(`"memory":64,"memoryReservation":64`, ""), nil},
		{"limit below the reservation", sized(`"memory":64,"memoryReservation":65`, ""), []string{"containerDefinitions[0].memoryReservation is 65; it must not exceed memory, which is 64"}},
		{"negative CPU", sized(`"memory":6,"cpu":-1`, ""), []string{"containerDefinitions[0].cpu is -1; allowed is 0 to 196608"}},
		{"units and MiB", sized("", `"cpu":"256","memory":"512"`), nil},
		{"cores and GB", sized("", `"cpu":".5 vCPU","memory":"1GB"`), nil},
		{"no amount", sized("", `"cpu":"much","memory":"1 TB"`), []string{
			`cpu is "much"; allowed are CPU units as "1024" or cores as "1 vCPU"`, `memory is "1 TB"; allowed are MiB as "1024" or "1 GB"`,
		}},
		{"no number before the unit", sized("", `"cpu":" vCPU","memory":"1..5 GB"`), []string{
			`cpu is " vCPU"; allowed are CPU units as "1024" or cores as "1 vCPU"`, `memory is "1..5 GB"; allowed are MiB as "1024" or "1 GB"`,
		}},
		{"signs and exponents", sized("", `"cpu":"+1 vCPU","memory":"1e3GB"`), []string{
			`cpu is "+1 vCPU"; allowed are CPU units as "1024" or cores as "1 vCPU"`, `memory is "1e3GB"; allowed are MiB as "1024" or "1 GB"`,
		}},
		{"past every machine", sized("", `"cpu":"99999999999 vCPU","memory":"99999999999"`), []string{
			`cpu is "99999999999 vCPU"; allowed are CPU units as "1024" or cores as "1 vCPU"`, `memory is "99999999999"; allowed are MiB as "1024" or "1 GB"`,
		}},
		{"a limit of the task's memory", sized(`"memory":512,"cpu":256`, `"cpu":"256","memory":"512"`), nil},
		{"least sizes", sized("", `"cpu":"128","memory":"6"`), nil},
		{"most CPU", sized("", `"cpu":"192 vCPU","memory":"6"`), nil},
		{"too much CPU", sized("", `"cpu":"196609","memory":"6"`), []string{"cpu is 196609; allowed is 128 to 196608"}},
		{"too little", sized("", `"cpu":"127","memory":"5"`), []string{"cpu is 127; allowed is 128 to 196608", "memory is 5; allowed is 6 to 1073741824"}},
		{"containers above the task's CPU", sized(`"cpu":257`, `"cpu":"256","memory":"512"`), []string{"cpu is 256; its containers ask for 257 together"}},
		{"a limit above the task's memory", sized(`"memory":513,"memoryReservation":8`, `"memory":"512"`), []string{"containerDefinitions[0].memory is 513; the task's memory is 512"}},
		{"reservations above the task's memory", two("", "", `"memory":"127"`), []string{"memory is 127; its containers reserve 128 together"}},
		{"reservations that fill the task's memory", two("", "", `"memory":"128"`), nil},
	})
}

func TestRule_Ports(t *testing.T) {
	port := func(s string) string { return with(`"portMappings":[` + s + `]`) }
	in := func(mode, s string) string {
		return strings.Replace(port(s), `"family"`, `"networkMode":"`+mode+`","family"`, 1)
	}
	const at = "containerDefinitions[0].portMappings[0]"
	judge(t, []verdict{
		{"dynamic", port(`{"containerPort":80},{"containerPort":81,"hostPort":0}`), nil},
		{"fixed", port(`{"containerPort":80,"hostPort":8080,"protocol":"udp"}`), nil},
		{"no container port", port(`{"hostPort":80}`), []string{at + ".containerPort is required"}},
		{"container port 0", port(`{"containerPort":0}`), []string{at + ".containerPort is 0; allowed is 1 to 65535"}},
		{"container port above", port(`{"containerPort":65536}`), []string{at + ".containerPort is 65536; allowed is 1 to 65535"}},
		{"host port below", port(`{"containerPort":1,"hostPort":-1}`), []string{at + ".hostPort is -1; allowed is 0 to 65535"}},
		{"host port above", port(`{"containerPort":1,"hostPort":65536}`), []string{at + ".hostPort is 65536; allowed is 0 to 65535"}},
		{"protocol", port(`{"containerPort":1,"protocol":"sctp"}`), []string{at + `.protocol is "sctp"; allowed: tcp, udp`}},
		{"one host port for TCP and UDP", port(`{"containerPort":53,"hostPort":53},{"containerPort":53,"hostPort":53,"protocol":"udp"}`), nil},
		{"one host port twice", port(`{"containerPort":80,"hostPort":80,"protocol":"tcp"},{"containerPort":81,"hostPort":80}`), []string{
			"containerDefinitions[0].portMappings[1].hostPort is 80/tcp, which " + at + " takes already",
		}},
		{"one host port in two containers", two(`"portMappings":[{"containerPort":80,"hostPort":80}]`, `"portMappings":[{"containerPort":80,"hostPort":80}]`, ""), []string{
			"containerDefinitions[1].portMappings[0].hostPort is 80/tcp, which " + at + " takes already",
		}},
		{"one dynamic port in two containers", two(`"portMappings":[{"containerPort":80}]`, `"portMappings":[{"containerPort":80}]`, ""), nil},
		{"host mode, absent", in("host", `{"containerPort":80}`), nil},
		{"host mode, equal", in("host", `{"containerPort":80,"hostPort":80}`), nil},
		{"host mode, other", in("host", `{"containerPort":80,"hostPort":81}`), []string{at + ".hostPort is 81; in network mode host it must be absent or the container's port, 80"}},
		{"host mode, one port in two containers", two(`"portMappings":[{"containerPort":80}]`, `"portMappings":[{"containerPort":80}]`, `"networkMode":"host"`), []string{
			"containerDefinitions[1].portMappings[0].hostPort is 80/tcp, which " + at + " takes already",
		}},
		{"none mode", in("none", `{"containerPort":80}`), []string{"containerDefinitions[0].portMappings must be empty in network mode none"}},
		{"name", port(`{"containerPort":80,"name":"Web"}`), []string{at + `.name is "Web"; allowed are up to 64 lower-case letters, digits, _ and -, not - first`}},
		{"one name twice", two(`"portMappings":[{"containerPort":80,"name":"web"}]`, `"portMappings":[{"containerPort":81,"name":"web"}]`, ""), []string{
			`containerDefinitions[1].portMappings[0].name repeats "web"`,
		}},
		{"a good range in network mode host", in("host", `{"containerPortRange":"1-1000"}`), []string{
			at + ".containerPortRange is not possible in network mode host",
		}},
		{"no range", port(`{"containerPortRange":"5-5"},{"containerPortRange":"0-5"},{"containerPortRange":"5"}`), []string{
			at + `.containerPortRange is "5-5"; allowed is FIRST-LAST within 1 to 65535, at most 1000 ports`,
			`containerDefinitions[0].portMappings[1].containerPortRange is "0-5"; allowed is FIRST-LAST within 1 to 65535, at most 1000 ports`,
			`containerDefinitions[0].portMappings[2].containerPortRange is "5"; allowed is FIRST-LAST within 1 to 65535, at most 1000 ports`,
		}},
		{"ranges side by side", port(`{"containerPortRange":"1-1000"},{"containerPortRange":"1-1000","protocol":"udp"},{"containerPortRange":"1001-1002"},{"containerPort":1003},{"containerPort":1003}`), nil},
		{"a range too many", port(`{"containerPortRange":"1-1001"}`), []string{at + `.containerPortRange is "1-1001"; allowed is FIRST-LAST within 1 to 65535, at most 1000 ports`}},
		{"ranges that meet", port(`{"containerPortRange":"5-9"},{"containerPortRange":"9-10"},{"containerPort":5}`), []string{
			"containerDefinitions[0].portMappings[1] has ports in common with portMappings[0], where one of them is a range",
			"containerDefinitions[0].portMappings[2] has ports in common with portMappings[0], where one of them is a range",
		}},
		{"edges", port(`{"containerPort":1,"hostPort":65535},{"containerPort":65535,"hostPort":1}`), nil},
		{"range", port(`{"containerPortRange":"9-5","containerPort":4}`), []string{
			at + ".containerPortRange excludes containerPort and hostPort",
			at + `.containerPortRange is "9-5"; allowed is FIRST-LAST within 1 to 65535, at most 1000 ports`,
		}},
	})
}

func TestRule_NetworkNames(t *testing.T) {
	const at = "containerDefinitions[0]."
	judge(t, []verdict{
		{"all well", with(`"hostname":"db1.corp","dnsServers":["10.0.0.1","fd00::1"],"dnsSearchDomains":["corp.test","."],
			"extraHosts":[{"hostname":"ldap","ipAddress":"10.20.30.40"},{"hostname":"host.internal","ipAddress":"host-gateway"}]`), nil},
		{"hostname", with(`"hostname":"-db"`), []string{at + `hostname is "-db"; allowed are up to 63 letters, digits, hyphens and dots`}},
		{"name server", with(`"dnsServers":["dns.corp"]`), []string{at + `dnsServers[0] is "dns.corp"; allowed is an IP address`}},
		{"search domain", with(`"dnsSearchDomains":["a b"]`), []string{at + `dnsSearchDomains[0] is "a b"; allowed is a domain`}},
		{"extra host", with(`"extraHosts":[{"hostname":"a:b","ipAddress":"ten"},{}]`), []string{
			at + `extraHosts[0].hostname is "a:b"; it must not hold a colon or a space`,
			at + `extraHosts[0].ipAddress is "ten"; allowed is an IP address`,
			at + "extraHosts[1].hostname is required", at + "extraHosts[1].ipAddress is required",
		}},
	})
}

func TestRule_Process(t *testing.T) {
	const at = "containerDefinitions[0]."
	judge(t, []verdict{
		{"all well", with(`"user":"10001:www-data","workingDirectory":"/srv","stopTimeout":86400,"entryPoint":["sh"],"command":[],
			"dockerLabels":{"a":""},"dockerSecurityOptions":["no-new-privileges","apparmor:web","label:type:x"],"environment":[{"name":"A","value":""},{"name":"A","value":"2"}]`), nil},
		{"user", with(`"user":"-1"`), []string{at + `user is "-1"; allowed are user, user:group, uid, uid:gid, user:gid, uid:group`}},
		{"folder", with(`"workingDirectory":"srv"`), []string{at + `workingDirectory is "srv"; it must be an absolute path`}},
		{"stopTimeout below", with(`"stopTimeout":-1`), []string{at + "stopTimeout is -1; allowed is 0 to 86400"}},
		{"stopTimeout above", with(`"stopTimeout":86401`), []string{at + "stopTimeout is 86401; allowed is 0 to 86400"}},
		{"label without name", with(`"dockerLabels":{"":"x"}`), []string{at + "dockerLabels has an empty name"}},
		{"zero bytes", with(`"entryPoint":["a\u0000"],"command":["b","\u0000"],"environment":[{"name":"A","value":"\u0000"}]`), []string{
			at + "environment[0].value must not hold a zero byte", at + "entryPoint[0] must not hold a zero byte", at + "command[1] must not hold a zero byte",
		}},
		{"environment", with(`"environment":[{"value":"x"},{"name":"A=B","value":"x"}]`), []string{
			at + "environment[0].name is required", at + `environment[1].name is "A=B"; it must not hold = or a zero byte`,
		}},
		{"security option", with(`"dockerSecurityOptions":["seccomp=unconfined","apparmor:","credentialspec:x"]`), []string{
			at + `dockerSecurityOptions[0] is "seccomp=unconfined"; allowed: no-new-privileges, apparmor:PROFILE, label:VALUE`,
			at + `dockerSecurityOptions[1] is "apparmor:"; allowed: no-new-privileges, apparmor:PROFILE, label:VALUE`,
			at + `dockerSecurityOptions[2] "credentialspec:x" is not supported: instances do not join an Active Directory`,
		}},
	})
}

func TestRule_Volumes(t *testing.T) {
	const at = "containerDefinitions[0]."
	mount := func(mounts, volumes string) string {
		return strings.TrimSuffix(with(`"mountPoints":[`+mounts+`]`), "}") + `,"volumes":[` + volumes + `]}`
	}
	judge(t, []verdict{
		{"all well", mount(`{"sourceVolume":"v","containerPath":"/v","readOnly":true},{"sourceVolume":"d","containerPath":"/d"}`,
			`{"name":"v","host":{"sourcePath":"/srv"}},{"name":"e","host":{}},{"name":"n"},{"name":"d","dockerVolumeConfiguration":{"scope":"shared","autoprovision":true,"driver":"local","driverOpts":{"type":"nfs"},"labels":{"a":"b"}}}`), nil},
		{"unknown volume", mount(`{"sourceVolume":"w","containerPath":"/v"}`, `{"name":"v"}`), []string{at + `mountPoints[0].sourceVolume names no volume of the task: "w"`}},
		{"mount without members", mount(`{}`, ``), []string{at + "mountPoints[0].sourceVolume is required", at + "mountPoints[0].containerPath is required"}},
		{"zero byte", mount(`{"sourceVolume":"v","containerPath":"/a\u0000"}`, `{"name":"v"}`), []string{at + "mountPoints[0].containerPath must not hold a zero byte"}},
		{"relative mount", mount(`{"sourceVolume":"v","containerPath":"v"}`, `{"name":"v"}`), []string{at + `mountPoints[0].containerPath is "v"; it must be an absolute path`}},
		{"one place twice", mount(`{"sourceVolume":"v","containerPath":"/v"},{"sourceVolume":"v","containerPath":"/v"}`, `{"name":"v"}`), []string{
			at + `mountPoints[1].containerPath is "/v", where containerDefinitions[0].mountPoints[0].containerPath is mounted already`,
		}},
		{"volume names", mount(``, `{"name":"v"},{"name":"v"},{"name":"a/b"},{}`), []string{
			`volumes[1].name repeats "v"`, `volumes[2].name is "a/b"; allowed are letters, digits, hyphens and underscores`, "volumes[3].name is required",
		}},
		{"relative source", mount(``, `{"name":"v","host":{"sourcePath":"./x"}}`), []string{`volumes[0].host.sourcePath is "./x"; it must be an absolute path`}},
		{"two kinds", mount(``, `{"name":"v","host":{},"dockerVolumeConfiguration":{}}`), []string{"volumes[0] has 2 configurations; allowed is one of host, dockerVolumeConfiguration"}},
		{"scope", mount(``, `{"name":"v","dockerVolumeConfiguration":{"scope":"node"}}`), []string{`volumes[0].dockerVolumeConfiguration.scope is "node"; allowed: task, shared`}},
		{"nameless options", mount(``, `{"name":"v","dockerVolumeConfiguration":{"driverOpts":{"":"x"},"labels":{"":"x"}}}`), []string{
			"volumes[0].dockerVolumeConfiguration.driverOpts has an empty name", "volumes[0].dockerVolumeConfiguration.labels has an empty name",
		}},
		{"EFS", mount(``, `{"name":"v","efsVolumeConfiguration":{"fileSystemId":"fs-1"}}`), []string{
			"volumes[0].efsVolumeConfiguration is not supported: mount the file system on the instances and name its folder in host.sourcePath",
		}},
	})
}

func TestRule_Linux(t *testing.T) {
	const at = "containerDefinitions[0].linuxParameters."
	linux := func(s string) string { return with(`"linuxParameters":{` + s + `}`) }
	tmpfs := `; allowed: defaults, ro, rw, suid, nosuid, dev, nodev, exec, noexec, sync, async, dirsync, remount, mand, nomand, atime, noatime, diratime, ` +
		`nodiratime, bind, rbind, unbindable, runbindable, private, rprivate, shared, rshared, slave, rslave, relatime, norelatime, strictatime, nostrictatime, ` +
		`and with a value: mode, uid, gid, nr_inodes, nr_blocks, mpol`
	judge(t, []verdict{
		{"all well", linux(`"initProcessEnabled":true,"sharedMemorySize":64,"capabilities":{"add":["NET_ADMIN"],"drop":["ALL"]},
			"devices":[{"hostPath":"/dev/kmsg","containerPath":"/dev/k","permissions":["read","write","mknod"]}],
			"tmpfs":[{"containerPath":"/run","size":8,"mountOptions":["rw","mode=1777"]}]`), nil},
		{"capability", linux(`"capabilities":{"add":["CAP_CHOWN"]}`), []string{
			at + `capabilities.add[0] is "CAP_CHOWN"; allowed: ALL, AUDIT_CONTROL, AUDIT_WRITE, BLOCK_SUSPEND, CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, IPC_LOCK, IPC_OWNER, KILL, LEASE, LINUX_IMMUTABLE, MAC_ADMIN, MAC_OVERRIDE, MKNOD, NET_ADMIN, NET_BIND_SERVICE, NET_BROADCAST, NET_RAW, SETFCAP, SETGID, SETPCAP, SETUID, SYS_ADMIN, SYS_BOOT, SYS_CHROOT, SYS_MODULE, SYS_NICE, SYS_PACCT, SYS_PTRACE, SYS_RAWIO, SYS_RESOURCE, SYS_TIME, SYS_TTY_CONFIG, SYSLOG, WAKE_ALARM`,
		}},
		{"shared memory", linux(`"sharedMemorySize":0`), []string{at + "sharedMemorySize is 0; allowed is 1 to 1073741824"}},
		{"swap", linux(`"maxSwap":-1,"swappiness":101`), []string{
			at + "maxSwap is -1; allowed is 0 to 1073741824", at + "swappiness is 101; allowed is 0 to 100",
		}},
		{"swap without a limit", strings.Replace(linux(`"maxSwap":0`), `"memory":64`, `"memoryReservation":64`, 1), []string{at + "maxSwap needs memory, the limit that it comes on top of"}},
		{"swappiness of no swap", linux(`"swappiness":10`), []string{at + "swappiness needs maxSwap"}},
		{"device", linux(`"devices":[{"containerPath":"x"},{"hostPath":"y"}]`), []string{
			at + "devices[0].hostPath is required", at + `devices[0].containerPath is "x"; it must be an absolute path`, at + `devices[1].hostPath is "y"; it must be an absolute path`,
		}},
		{"tmpfs", linux(`"tmpfs":[{},{"containerPath":"/a","size":0},{"containerPath":"/a","size":1,"mountOptions":["fast","ro=1"]}]`), []string{
			at + "tmpfs[0].containerPath is required", at + "tmpfs[0].size is required", at + "tmpfs[1].size is 0; allowed is 1 to 1073741824",
			at + `tmpfs[2].containerPath is "/a", where containerDefinitions[0].linuxParameters.tmpfs[1].containerPath is mounted already`,
			at + `tmpfs[2].mountOptions[0] is "fast"` + tmpfs, at + `tmpfs[2].mountOptions[1] is "ro=1"` + tmpfs,
		}},
	})
}

func TestRule_LimitsAndControls(t *testing.T) {
	const at = "containerDefinitions[0]."
	const ipc = "kernel.msgmax, kernel.msgmnb, kernel.msgmni, kernel.sem, kernel.shmall, kernel.shmmax, kernel.shmmni, kernel.shm_rmid_forced"
	judge(t, []verdict{
		{"all well", with(`"ulimits":[{"name":"nofile","softLimit":1,"hardLimit":1},{"name":"core","softLimit":0,"hardLimit":-1},{"name":"rss","softLimit":-1,"hardLimit":-1}],
			"systemControls":[{"namespace":"net.core.somaxconn","value":"1"},{"namespace":"kernel.sem","value":"1"},{"namespace":"fs.mqueue.msg_max","value":"1"}]`), nil},
		{"unknown limit", with(`"ulimits":[{"name":"files","softLimit":1,"hardLimit":1}]`), []string{
			at + `ulimits[0].name is "files"; allowed: core, cpu, data, fsize, locks, memlock, msgqueue, nice, nofile, nproc, rss, rtprio, rttime, sigpending, stack`,
		}},
		{"empty limit", with(`"ulimits":[{}]`), []string{at + "ulimits[0].name is required", at + "ulimits[0].softLimit is required", at + "ulimits[0].hardLimit is required"}},
		{"soft above hard", with(`"ulimits":[{"name":"cpu","softLimit":2,"hardLimit":1}]`), []string{at + "ulimits[0].softLimit is 2; it must not exceed hardLimit, which is 1"}},
		{"soft without end", with(`"ulimits":[{"name":"cpu","softLimit":-1,"hardLimit":1}]`), []string{at + "ulimits[0].softLimit is -1; it must not exceed hardLimit, which is 1"}},
		{"below no limit", with(`"ulimits":[{"name":"cpu","softLimit":-2,"hardLimit":-3}]`), []string{
			at + "ulimits[0].softLimit is -2; allowed is -1 (no limit) or more", at + "ulimits[0].hardLimit is -3; allowed is -1 (no limit) or more",
		}},
		{"one limit twice", with(`"ulimits":[{"name":"cpu","softLimit":1,"hardLimit":1},{"name":"cpu","softLimit":1,"hardLimit":1}]`), []string{at + `ulimits[1].name repeats "cpu"`}},
		{"kernel parameter", with(`"systemControls":[{"namespace":"vm.swappiness","value":"1"}]`), []string{
			at + `systemControls[0].namespace is "vm.swappiness"; allowed: net.*, fs.mqueue.*, ` + ipc,
		}},
		{"empty parameter", with(`"systemControls":[{}]`), []string{at + "systemControls[0].value is required", at + "systemControls[0].namespace is required"}},
		{"one parameter twice", with(`"systemControls":[{"namespace":"kernel.sem","value":"1"},{"namespace":"kernel.sem","value":"2"}]`), []string{
			at + `systemControls[1].namespace repeats "kernel.sem"`,
		}},
		{"network parameter on the host's network", two(`"systemControls":[{"namespace":"net.core.somaxconn","value":"1"}]`, "", `"networkMode":"host"`), []string{
			at + `systemControls[0].namespace is "net.core.somaxconn", which is the host's own in network mode host`,
		}},
		{"the host's namespaces", beside(`"pidMode":"host","ipcMode":"none"`), nil},
		{"the task's namespaces", beside(`"pidMode":"task","ipcMode":"task"`), nil},
		{"no such namespace", beside(`"pidMode":"none"`), []string{`pidMode is "none"; allowed: host, task`}},
		{"IPC parameter on the host's IPC", two(`"systemControls":[{"namespace":"kernel.sem","value":"1"}]`, "", `"ipcMode":"host"`), []string{
			at + `systemControls[0].namespace is "kernel.sem", which is the host's own in IPC mode host`,
		}},
	})
}

func TestRule_LogsAndGPUs(t *testing.T) {
	const at = "containerDefinitions[0]."
	gpu := func(s string) string { return with(`"resourceRequirements":[` + s + `]`) }
	judge(t, []verdict{
		{"each driver", with(`"logConfiguration":{"logDriver":"awslogs","options":{"awslogs-group":"g","awslogs-region":"r"}}`), nil},
		{"no driver", with(`"logConfiguration":{}`), []string{at + "logConfiguration.logDriver is required"}},
		{"unknown driver", with(`"logConfiguration":{"logDriver":"etwlogs"}`), []string{
			at + `logConfiguration.logDriver is "etwlogs"; allowed: json-file, syslog, journald, gelf, fluentd, awslogs, splunk, none`,
		}},
		{"missing options", with(`"logConfiguration":{"logDriver":"awslogs","options":{"awslogs-group":"g"}}`), []string{
			at + "logConfiguration.options lacks awslogs-region, which the log driver awslogs needs",
		}},
		{"a secret option counts as given", with(`"logConfiguration":{"logDriver":"splunk","options":{"splunk-url":"u"},"secretOptions":[{"name":"splunk-token","valueFrom":"x"}]}`), []string{
			"executionRoleArn is required: When you are specifying log secret options, you must also specify a value for 'executionRoleArn'.",
		}},
		{"options for no log", with(`"logConfiguration":{"logDriver":"none","options":{"a":"b"}}`), []string{at + "logConfiguration.options must be empty with the log driver none"}},
		{"GPUs", gpu(`{"type":"GPU","value":"2"}`), nil},
		{"no GPU", gpu(`{"type":"GPU","value":"0"}`), []string{at + `resourceRequirements[0].value is "0"; allowed is a number of GPUs, 1 to 64`}},
		{"half a GPU", gpu(`{"type":"GPU","value":"0.5"}`), []string{at + `resourceRequirements[0].value is "0.5"; allowed is a number of GPUs, 1 to 64`}},
		{"too many GPUs", gpu(`{"type":"GPU","value":"65"}`), []string{at + `resourceRequirements[0].value is "65"; allowed is a number of GPUs, 1 to 64`}},
		{"all GPUs", gpu(`{"type":"GPU","value":"ALL"}`), []string{at + `resourceRequirements[0].value "ALL" is not supported: name the number of GPUs`}},
		{"GPU without number", gpu(`{"type":"GPU"},{"type":"GPU","value":"1"},{}`), []string{
			at + "resourceRequirements[0].value is required", at + `resourceRequirements[1].type repeats "GPU"`, at + "resourceRequirements[2].type is required",
		}},
		{"a shared GPU", gpu(`{"type":"GPU","sharingStrategy":{"nvidiaMps":{"memory":10}}}`), []string{
			at + "resourceRequirements[0].sharingStrategy is not supported: a GPU is given whole, to one container at a time",
		}},
	})
}
