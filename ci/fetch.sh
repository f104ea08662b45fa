#!/bin/sh
# ci/fetch.sh DEST: fetch the archives of ci/sources.txt, verify them, and unpack each as DEST/NAME.
#
# They come from KD_SOURCE_MIRROR (a directory, or a URL prefix, holding the files under the names of ci/sources.txt) where
# that is set, else from the source archive of the Debian mirror that this machine's apt is set up with. Only files whose
# SHA-256 is the pinned one are ever unpacked.
set -eu

pins=$(dirname "$0")/sources.txt
mkdir -p "$1"
dest=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

die() {
	echo "fetch: $*" >&2
	exit 1
}

# The suites of the pins may be newer than this machine's: a configuration of its own, so that the machine's is neither
# read for preferences nor changed. `indextargets` knows sources.list and deb822 files alike.
apt_configure() {
	# shellcheck disable=SC2016 # apt's own variables
	uri=$(apt-get indextargets --format '$(ORIGIN):$(LABEL) $(REPO_URI)' 'Created-By: Packages' |
		awk '$1 == "Debian:Debian" { print $2; exit }')
	[ -n "$uri" ] || die "apt knows no Debian mirror here (apt-get update?); set KD_SOURCE_MIRROR"
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	mkdir -p "$scratch/lists/partial" "$scratch/cache/archives/partial"
	awk -v uri="$uri" -v key="$([ -e $keyring ] && echo "[signed-by=$keyring]")" \
		'!/^#/ && !seen[$3]++ { print "deb-src", key, uri, $3, "main" }' "$pins" >"$scratch/sources.list"
	cat >"$scratch/apt.conf" <<-EOF
		Dir::Etc::sourcelist "$scratch/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::State "$scratch";
		Dir::State::lists "$scratch/lists";
		Dir::Cache "$scratch/cache";
		APT::Sandbox::User "root";
		Acquire::Retries "3";
	EOF
	APT_CONFIG=$scratch/apt.conf apt-get -qq update
}

fetch() { # NAME SUITE FILE: leaves it in $scratch
	case ${KD_SOURCE_MIRROR:-} in
	'')
		[ -e "$scratch/apt.conf" ] || apt_configure
		(cd "$scratch" && APT_CONFIG=$scratch/apt.conf apt-get -qq source --download-only --tar-only "$1/$2") >&2
		;;
	*://*) /usr/lib/apt/apt-helper -qq -o APT::Sandbox::User=root download-file "${KD_SOURCE_MIRROR%/}/$3" "$scratch/$3" >&2 ;;
	*) cp "$KD_SOURCE_MIRROR/$3" "$scratch/$3" ;;
	esac
}

verified() { # SHA256 FILE
	echo "$1  $2" | sha256sum --check --status 2>/dev/null
}

grep -v '^#' "$pins" | while read -r name version suite sha256 file; do
	if ! verified "$sha256" "$dest/$file"; then
		fetch "$name" "$suite" "$file" || true
		[ -e "$scratch/$file" ] ||
			die "unable to fetch $name $version; set KD_SOURCE_MIRROR to a directory or URL prefix with $file"
		verified "$sha256" "$scratch/$file" || die "$file is not the pinned one (SHA-256)"
		mv "$scratch/$file" "$dest/$file"
	fi
	rm -rf "${dest:?}/$name"
	mkdir "$dest/$name"
	tar -xf "$dest/$file" -C "$dest/$name" --strip-components=1 --no-same-owner
done
