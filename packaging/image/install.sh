#!/bin/sh
# Puts the agent into a machine image, from the package beside this file or the one that is
# named, and leaves no identity behind: what an instance is, it finds out at its first start.
# EC2 Image Builder and Packer both call it; cloud-init may.
#
#   install.sh [PACKAGE]
#
# Settings that are in the environment (LONGSHORE_…, AWS_REGION) are written to
# /etc/longshore/agent.env. The agent is enabled and not started: it starts with the machine.
set -eu

say() { echo "install: $*"; }
fail() { echo "install: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || fail "must run as root"
case $(uname -m) in
x86_64) deb=amd64 rpm=x86_64 ;;
aarch64) deb=arm64 rpm=aarch64 ;;
*) fail "there is no package for $(uname -m): amd64 and arm64 are made" ;;
esac

if command -v dpkg >/dev/null 2>&1; then
	kind=deb
elif command -v rpm >/dev/null 2>&1; then
	kind=rpm
else
	fail "neither dpkg nor rpm is here"
fi

# package is the one file that fits this machine.
here=$(cd "$(dirname "$0")" && pwd)
package=${1:-}
if [ -z "$package" ]; then
	for file in "$here"/longshore-agent*"$deb".deb "$here"/longshore-agent*"$rpm".rpm; do
		case $file in *."$kind") [ -f "$file" ] && package=$file ;; esac
	done
fi
[ -n "$package" ] || fail "no .$kind for $(uname -m) is beside $0; make it with: make package"
[ -f "$package" ] || fail "$package: no such file"

say "installing $package"
case $kind in
deb) DEBIAN_FRONTEND=noninteractive dpkg --install --force-confold "$package" ;;
rpm) rpm --upgrade --replacepkgs "$package" ;;
esac

# Settings, each once; the last word is the environment's.
env_file=/etc/longshore/agent.env
umask 077
env | grep -E '^(LONGSHORE_[A-Z0-9_]+|AWS_REGION|DOCKER_HOST)=.' | sort | while IFS='=' read -r name value; do
	grep -v "^$name=" "$env_file" >"$env_file.new" || true # it may have had nothing else
	printf '%s=%s\n' "$name" "$value" >>"$env_file.new"
	mv "$env_file.new" "$env_file"
	say "$name is set"
done

command -v docker >/dev/null 2>&1 || say "warning: no docker command is here; the agent needs a Docker engine"
if grep -q '^LONGSHORE_REPORTS_QUEUE_URL=.' "$env_file"; then
	longshore-agent check-config
else
	say "the queues are not set: the first boot must write LONGSHORE_REPORTS_QUEUE_URL and LONGSHORE_HEARTBEATS_QUEUE_URL to $env_file"
fi

systemctl enable longshore-agent.service
if [ -d /run/systemd/system ]; then
	systemctl stop longshore-agent.service # an image is made of a machine at rest
fi
# What would make two machines one: the journal, the incarnation in it, and the identity.
rm -rf /var/lib/longshore
say "$(longshore-agent version) is installed, enabled, and has no identity yet"
