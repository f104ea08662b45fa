#!/bin/sh
# ci/clean-machine.sh [SUITE [DIR]]: run the two commands of the README on a new Debian machine: a minimal root made with
# debootstrap below DIR (default: a temporary folder), this tree copied into it, chroot in a mount namespace of its own.
# Needs root, debootstrap, and Debian's mirror as this machine's apt knows it. Not part of .ci/run: it takes minutes.
set -eu

suite=${1:-bookworm}
top=$(cd "$(dirname "$0")/.." && pwd)
base=$(mktemp -d -p "${2:-${TMPDIR:-/tmp}}" kd-clean.XXXXXX)
trap 'rm -rf --one-file-system "$base"' EXIT
root=$base/root

# This machine's own sources, security updates included, for that suite.
# shellcheck disable=SC2016 # apt's own variables
apt-get indextargets --format '$(ORIGIN) $(CODENAME) deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
	awk -v suite="$suite" '$1 == "Debian" { host = $2; sub(/-.*/, "", host); sub(host, suite, $5); print $3, $4, $5, $6 }' \
		>"$base/sources.list"
mirror=$(awk -v suite="$suite" '$3 == suite { print $2; exit }' "$base/sources.list")
debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$base/debootstrap.log" || {
	tail -n 5 "$base/debootstrap.log" >&2
	exit 1
}
cp "$base/sources.list" "$root/etc/apt/sources.list"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
# How this machine reaches its package registries comes along: pip's settings, and the certificates it trusts.
mkdir -p "$root/srv/certificates"
[ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$root/srv/certificates/"
env | grep -iE '^(PIP_[A-Z_]*|[a-z]*_proxy)=' | grep -v FIND_LINKS | sed 's,^\(PIP_CERT\)=.*,\1=/srv/certificates/ca-certificates.crt,' >"$base/settings"

mkdir -p "$root/srv/kd-preflight"
(cd "$top" && git ls-files -z --cached --others --exclude-standard | tar -c --null -T - -f -) | tar -x -C "$root/srv/kd-preflight"

cat >"$base/inside" <<'EOF'
mount --make-rprivate /
mount --bind "$1" "$1" # a root is a mount point: tests that make namespaces of their own rely on it
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
mount --rbind /dev "$1/dev"
exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LANG=C.UTF-8 ${CI:+CI=$CI} $(cat "$3") sh -c "cd /srv/kd-preflight && $2"
EOF

status=0
grep -E '^ *sh ci/deps\.sh ' "$top/README.md" | head -n 2 >"$base/commands"
while read -r command; do
	echo "== $suite: $command"
	began=$(date +%s)
	unshare --mount --pid --fork sh -eu "$base/inside" "$root" "$command" "$base/settings" </dev/null || {
		echo "== failed: exit status $?"
		status=1
	}
	echo "== $(($(date +%s) - began)) s"
done <"$base/commands"
exit $status
