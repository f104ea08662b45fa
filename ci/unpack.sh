#!/bin/sh
# ci/unpack.sh ARCH SUITE DEST PACKAGE...: unpack Debian packages of any suite and architecture below DEST, without installing
# them: from the mirror that this machine's apt is set up with, verified by apt as usual. DEST/versions lists them. A
# package linux-image-* without a version stands for the kernel that it depends on. COMPONENTS (main) names the parts of
# the archive.
set -eu

arch=$1 suite=$2
mkdir -p "$3"
dest=$(cd "$3" && pwd)
shift 3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# A configuration of its own, so that the machine's is neither changed nor asked for packages of that architecture.
# shellcheck disable=SC2016 # apt's own variables
uri=$(apt-get indextargets --format '$(ORIGIN):$(LABEL) $(REPO_URI)' 'Created-By: Packages' |
	awk '$1 == "Debian:Debian" { print $2; exit }')
[ -n "$uri" ] || { echo "unpack: apt knows no Debian mirror here (apt-get update?)" >&2; exit 1; }
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb $([ ! -e $keyring ] || echo "[signed-by=$keyring]") $uri $suite ${COMPONENTS:-main}" >"$scratch/sources.list"
mkdir -p "$scratch/lists/partial" "$scratch/cache/archives/partial" "$scratch/debs"
: >"$scratch/status"
cat >"$scratch/apt.conf" <<EOF
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
Dir::Etc::sourcelist "$scratch/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$scratch";
Dir::State::lists "$scratch/lists";
Dir::State::status "$scratch/status";
Dir::Cache "$scratch/cache";
APT::Sandbox::User "root";
Acquire::Retries "3";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false";
EOF
export APT_CONFIG="$scratch/apt.conf"
apt-get -qq update
cd "$scratch/debs"
for package; do
	case $package in linux-image-[!0-9]*) package=$(apt-cache depends "$package" | sed -n 's/^ *Depends: //p' | head -n 1) ;; esac
	apt-get -qq download "$package"
done
for deb in *.deb; do
	dpkg-deb --extract "$deb" "$dest"
	# shellcheck disable=SC2016 # dpkg's own variables
	dpkg-deb --show --showformat '${Package} ${Version}\n' "$deb"
done >>"$dest/versions"
