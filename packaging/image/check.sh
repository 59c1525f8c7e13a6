#!/bin/sh
# Says whether a machine may become an image: the agent is installed, enabled and at rest, and
# nothing is left that would make two machines one. Each fault is a line, and the exit code is 1.
#
#   check.sh              before the image is made, where install.sh --image ran
#   check.sh --started    on a machine that was started from it: it has an identity of its own by
#                         now, and the agent is the one that was installed
set -u

faults=0
fault() { echo "check: $*" >&2; faults=$((faults + 1)); }
none() { # none WHAT FILE...: none of the files is there
	what=$1
	shift
	for file in "$@"; do
		if [ -e "$file" ] || [ -L "$file" ]; then
			fault "$file is there: $what"
		fi
	done
}

case ${1:-} in
"" | --started) ;;
*) echo "usage: check.sh [--started]" >&2; exit 2 ;;
esac

version=$(longshore-agent version) || fault "longshore-agent does not run"
[ "$(systemctl is-enabled longshore-agent.service 2>/dev/null)" = enabled ] || fault "longshore-agent.service is not enabled"
command -v dockerd >/dev/null 2>&1 || fault "there is no Docker engine"
if grep -q '^LONGSHORE_REPORTS_QUEUE_URL=.' /etc/longshore/agent.env; then
	longshore-agent check-config || fault "the settings are not good"
fi

if [ "${1:-}" = --started ]; then
	[ -s /etc/machine-id ] || fault "/etc/machine-id is empty: the machine has not started from the image"
else
	if systemctl is-active --quiet longshore-agent.service; then
		fault "the agent runs"
	fi
	none "two agents would be one container instance" /var/lib/longshore
	none "two engines would have one id" /var/lib/docker/engine-id /etc/docker/key.json
	[ ! -s /etc/machine-id ] || fault "/etc/machine-id is not empty: two machines would have one id"
	[ ! -f /var/lib/dbus/machine-id ] || [ ! -s /var/lib/dbus/machine-id ] || fault "/var/lib/dbus/machine-id is not empty"
	none "two machines would have one host key" /etc/ssh/ssh_host_*_key
	none "two machines would begin with one seed" /var/lib/systemd/random-seed
fi

[ "$faults" = 0 ] || exit 1
echo "check: $version is ready"
