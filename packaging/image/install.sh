#!/bin/sh
# Installs the agent's package on this machine: the one that fits, beside this file, or the one that is
# named. EC2 Image Builder, Packer and cloud-init call it. It may run again.
#
#   install.sh [--image] [--docker] [--sha256 HEX] [PACKAGE]
#
#   --image        this machine becomes an image: nothing is started, and whatever would make
#                  two machines one is removed; what an instance is, it finds out at its first start
#   --docker       install the distribution's Docker engine where there is none
#   --sha256 HEX   of the package; without it SHA256SUMS beside the package must name it
#
# Settings in the environment (LONGSHORE_…, AWS_REGION, DOCKER_HOST) are written to
# /etc/longshore/agent.env. The agent is enabled; without --image it is started, too, if it
# can be.
set -eu

say() { echo "install: $*"; }
fail() { echo "install: $*" >&2; exit 1; }

image=no docker=no sha256="" package=""
while [ $# -gt 0 ]; do
	case $1 in
	--image) image=yes ;;
	--docker) docker=yes ;;
	--sha256) [ $# -ge 2 ] || fail "--sha256 needs a sum"; sha256=$2; shift ;;
	-*) fail "unknown option $1 (known: --image --docker --sha256 HEX)" ;;
	*) [ -z "$package" ] || fail "one package, not $package and $1"; package=$1 ;;
	esac
	shift
done

[ "$(id -u)" = 0 ] || fail "must run as root"
case $(uname -m) in
x86_64) deb=amd64 rpm=x86_64 ;;
aarch64) deb=arm64 rpm=aarch64 ;;
*) fail "there is no package for $(uname -m): amd64 (x86_64) and arm64 (aarch64) are made" ;;
esac

# The distribution says which packages are its own; a machine may have the other's tool as well.
# shellcheck disable=SC1091 # it is the machine's
system=$(. /etc/os-release && echo "$ID ${ID_LIKE:-}") || fail "no /etc/os-release: this system is not known"
kind=""
for id in $system; do
	case $id in
	debian | ubuntu) kind=deb; break ;;
	amzn | fedora | rhel | centos | suse | opensuse*) kind=rpm; break ;;
	esac
done
case $kind in
deb) command -v dpkg >/dev/null || fail "no dpkg here" ;;
rpm) command -v rpm >/dev/null || fail "no rpm here" ;;
*) fail "$system is not known: deb is for Debian and Ubuntu, rpm for Amazon Linux, Fedora, RHEL and their kin, and SUSE" ;;
esac
command -v systemctl >/dev/null || fail "no systemctl here: the agent is a systemd service"

# The one file that fits this machine.
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "$package" ]; then
	for file in "$here"/longshore-agent*"$deb".deb "$here"/longshore-agent*"$rpm".rpm; do
		case $file in
		*."$kind")
			[ -f "$file" ] || continue
			[ -z "$package" ] || fail "more than one .$kind for $(uname -m) is beside $0: name one"
			package=$file
			;;
		esac
	done
fi
[ -n "$package" ] || fail "no .$kind for $(uname -m) is beside $0; make it with: make package"
[ -f "$package" ] || fail "$package: no such file"
case $package in
*."$kind") ;;
*) fail "$package is not a .$kind, which this system wants" ;;
esac

# Whole, and for this architecture.
sum=$(sha256sum "$package" | cut -d' ' -f1)
if [ -z "$sha256" ]; then
	sums=$(dirname "$package")/SHA256SUMS
	[ -f "$sums" ] || fail "no --sha256, and no SHA256SUMS beside $package: what it holds cannot be verified"
	sha256=$(awk -v name="$(basename "$package")" '$2 == name || $2 == "*" name { print $1 }' "$sums")
	[ -n "$sha256" ] || fail "$sums does not name $(basename "$package")"
fi
[ "$sum" = "$(echo "$sha256" | tr A-F a-f)" ] || fail "$package has the SHA-256 $sum, not $sha256"
case $kind in
deb) for_arch=$(dpkg-deb --field "$package" Architecture) this_arch=$deb ;;
rpm) for_arch=$(rpm --query --package --queryformat '%{ARCH}' "$package") this_arch=$rpm ;;
esac
[ "$for_arch" = "$this_arch" ] || fail "$package is for $for_arch, and this machine is $this_arch"

if [ "$docker" = yes ] && ! command -v dockerd >/dev/null 2>&1; then
	say "installing a Docker engine"
	if [ "$kind" = deb ]; then
		apt-get update -q
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends docker.io ca-certificates
	elif command -v dnf >/dev/null 2>&1; then
		dnf install -y docker
	else
		yum install -y docker
	fi
	systemctl enable docker.service
fi
command -v dockerd >/dev/null 2>&1 || say "warning: no dockerd is here; the agent needs a Docker engine (--docker installs one)"

say "installing $package"
case $kind in
deb) DEBIAN_FRONTEND=noninteractive dpkg --install --force-confold "$package" ;;
rpm) rpm --upgrade --replacepkgs "$package" ;;
esac

# Settings, each once; the last word is the environment's.
env_file=/etc/longshore/agent.env
umask 077
newline='
'
env | sed -n -E 's/^(LONGSHORE_[A-Z0-9_]+|AWS_REGION|DOCKER_HOST)=.*/\1/p' | sort -u | while read -r name; do
	value=$(printenv "$name") || continue # a line of another's value
	case $value in
	"") continue ;;
	*"$newline"*) fail "$name has more than one line: the file of settings holds one for each" ;;
	[\"\']* | *\\* | [[:space:]]* | *[[:space:]])
		fail "$name begins with a quote, has a blank at an end, or a backslash: systemd would read another value; write it to $env_file yourself" ;;
	esac
	grep -v "^$name=" "$env_file" >"$env_file.new" || true # it may have had nothing else
	printf '%s=%s\n' "$name" "$value" >>"$env_file.new"
	mv "$env_file.new" "$env_file"
	say "$name is set"
done
ready=no
if grep -q '^LONGSHORE_REPORTS_QUEUE_URL=.' "$env_file"; then
	longshore-agent check-config
	ready=yes
else
	say "the queues are not set: LONGSHORE_REPORTS_QUEUE_URL and LONGSHORE_HEARTBEATS_QUEUE_URL must be written to $env_file before the agent can start"
fi

systemctl enable longshore-agent.service
if [ "$image" = no ]; then
	if [ "$ready" = yes ] && [ -d /run/systemd/system ]; then
		systemctl restart longshore-agent.service # it may have run with other settings
	fi
	say "$(longshore-agent version) is installed and enabled"
	exit 0
fi

if [ -d /run/systemd/system ]; then
	systemctl stop longshore-agent.service # an image is made of a machine at rest
fi
# What would make two machines one. The agent: journal, incarnation, identity. The engine: its id. The
# machine: its id (empty, so that the first start makes one), seed, host keys, first-boot state, journal.
rm -rf /var/lib/longshore
rm -f /var/lib/docker/engine-id /etc/docker/key.json
: >/etc/machine-id
[ -L /var/lib/dbus/machine-id ] || rm -f /var/lib/dbus/machine-id
rm -f /var/lib/systemd/random-seed /etc/ssh/ssh_host_*_key /etc/ssh/ssh_host_*_key.pub
rm -rf /var/log/journal/*
if command -v cloud-init >/dev/null 2>&1; then
	cloud-init clean --logs
fi
say "$(longshore-agent version) is installed, enabled, and has no identity yet"
