#!/bin/sh
# Becomes the init of a machine made of this one: everything that is written goes to a
# tmpfs above the machine's own "/". Called in new mount, process, IPC and UTS namespaces.
#
#   boot.sh DIR CGROUP DOCKER_SOCKET
set -eu
dir=$1 cgroup=$2 socket=$3
echo 0 >"$cgroup/cgroup.procs"
mount --make-rprivate /
mount -t tmpfs -o mode=755,size=1g tmpfs "$dir"
mkdir "$dir/upper" "$dir/work" "$dir/root"
mount -t overlay -o "lowerdir=/,upperdir=$dir/upper,workdir=$dir/work" overlay "$dir/root"
cd "$dir/root"
mount -t proc proc proc
mount -o bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys # these settings are not a namespace's: hands off
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount --rbind /dev dev
touch run/docker.sock
mount -o bind "$socket" run/docker.sock
# Nothing but the journal starts by itself: this machine's services are not wanted twice.
rm -rf etc/systemd/system/*.wants etc/systemd/system/*.requires etc/fstab usr/lib/systemd/system-generators \
	usr/lib/systemd/system/timers.target.wants usr/lib/systemd/system/local-fs.target.wants usr/lib/systemd/system/multi-user.target.wants
find usr/lib/systemd/system/sysinit.target.wants usr/lib/systemd/system/sockets.target.wants \
	-mindepth 1 ! -name 'systemd-journald.s*' ! -name 'systemd-journald-dev-log.socket' -delete
for unit in docker.service docker.socket containerd.service; do
	ln -sf /dev/null "etc/systemd/system/$unit" # the engine is this machine's own
done
# The network is this machine's own: what would change it says that it is done, and does nothing.
# The real ones are for who has a network of its own.
mkdir -p usr/local/sbin usr/local/lib/network
for tool in ip iptables ip6tables; do
	cp "$(command -v $tool)" usr/local/lib/network/$tool
	printf '#!/bin/sh\nexit 0\n' >"usr/local/sbin/$tool"
	chmod 755 "usr/local/sbin/$tool"
	rm -f "usr/sbin/$tool" "sbin/$tool" "usr/bin/$tool" "bin/$tool"
	ln -s ../local/sbin/$tool usr/sbin/$tool
done
mkdir -p etc/systemd/journald.conf.d
printf '[Journal]\nStorage=volatile\nRateLimitBurst=0\nForwardToSyslog=no\n' >etc/systemd/journald.conf.d/test.conf
# A root of cgroups of its own, in the namespace that begins now.
exec unshare --cgroup /bin/sh -c 'mount -t cgroup2 cgroup2 sys/fs/cgroup
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . /lib/systemd/systemd --unit=multi-user.target --show-status=no --log-target=journal'
