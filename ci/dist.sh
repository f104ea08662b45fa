#!/bin/sh
# ci/dist.sh FOLDER VERSION MACHINE MUSL_VERSION GCC_VERSION: what `make dist` leaves in FOLDER, out of what is built below
# build/: the tarball (a prefix with what `make install` puts there, and an SBOM), and SHA256SUMS. The same commit gives the
# same bytes anywhere: times are SOURCE_DATE_EPOCH, or else the commit's.
set -eu

folder=$1 version=$2 machine=$3 musl=$4 gcc=$5
name=kd-preflight-$version-linux-$machine
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null)} ||
	{ echo "dist: no commit here; set SOURCE_DATE_EPOCH" >&2; exit 1; }
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

${MAKE:-make} --silent install DESTDIR="$stage" PREFIX="/$name"

package() { # NAME VERSION LICENCE COPYRIGHT HOMEPAGE SHA256 FILE COMMENT: one package of the SBOM
	printf '    {\n      "SPDXID": "SPDXRef-%s",\n      "name": "%s",\n      "versionInfo": "%s",\n' "$1" "$1" "$2"
	printf '      "licenseConcluded": "%s",\n      "licenseDeclared": "%s",\n      "copyrightText": "%s",\n' "$3" "$3" "$4"
	[ -z "$5" ] || printf '      "homepage": "%s",\n' "$5"
	[ -z "$6" ] || printf '      "checksums": [{"algorithm": "SHA256", "checksumValue": "%s"}],\n      "packageFileName": "%s",\n' "$6" "$7"
	[ -z "$8" ] || printf '      "comment": "%s",\n' "$8"
	printf '      "downloadLocation": "NOASSERTION",\n      "filesAnalyzed": false\n    }'
}

pinned() { # NAME FIELD: of ci/sources.txt
	awk -v name="$1" -v field="$2" '$1 == name { print $field }' ci/sources.txt
}

relation() {
	printf '    {"spdxElementId": "SPDXRef-%s", "relationshipType": "%s", "relatedSpdxElement": "SPDXRef-%s"}' "$1" "$2" "$3"
}

# The linker's map says which archives gave anything to the program; one that is not known here is not to be forgotten.
archives=$(sed -n 's,^[^ ]*/\(lib[a-z]*\)\.a(.*,\1,p' build/kd-preflight.map | sort -u)
for archive in $archives; do
	case $archive in
	libkd | libcjson | libc | libgcc) ;;
	*) echo "dist: $archive is linked, and not in the SBOM and NOTICE" >&2; exit 1 ;;
	esac
done
has_libgcc() {
	echo "$archives" | grep -qx libgcc
}

sbom() {
	sha256=$(sha256sum build/kd-preflight | cut -d ' ' -f 1)
	cat <<-EOF
		{
		  "spdxVersion": "SPDX-2.3",
		  "dataLicense": "CC0-1.0",
		  "SPDXID": "SPDXRef-DOCUMENT",
		  "name": "$name",
		  "documentNamespace": "urn:kd-preflight:$version:$machine:sha256:$sha256",
		  "creationInfo": {"created": "$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)", "creators": ["Tool: kd-preflight-ci/dist.sh"]},
		  "packages": [
	EOF
	package kd-preflight "$version" Apache-2.0 'The kd-preflight authors' '' "$sha256" bin/kd-preflight ''
	echo ,
	package cjson "$(pinned cjson 2)" MIT 'Copyright (c) 2009-2017 Dave Gamble and cJSON contributors' \
		https://github.com/DaveGamble/cJSON "$(pinned cjson 4)" "$(pinned cjson 5)" ''
	echo ,
	package musl "$musl" MIT 'Copyright (c) 2005-2020 Rich Felker, et al.' https://musl.libc.org/ '' '' "Debian's package musl-dev"
	echo ,
	if has_libgcc; then
		package libgcc "$gcc" 'GPL-3.0-or-later WITH GCC-exception-3.1' 'Free Software Foundation, Inc.' https://gcc.gnu.org/ '' '' \
			'arithmetic of 128-bit floating point, which the processor lacks'
		echo ,
	fi
	package libseccomp "$(pinned libseccomp 2)" LGPL-2.1-only 'The libseccomp authors' https://github.com/seccomp/libseccomp \
		"$(pinned libseccomp 4)" "$(pinned libseccomp 5)" 'compiles the seccomp filters when kd-preflight is built; no code of it is linked'
	printf '\n  ],\n  "relationships": [\n'
	relation DOCUMENT DESCRIBES kd-preflight
	for linked in cjson musl $(! has_libgcc || echo libgcc); do
		echo ,
		relation kd-preflight STATIC_LINK "$linked"
	done
	echo ,
	relation libseccomp BUILD_TOOL_OF kd-preflight
	printf '\n  ]\n}\n'
}

sbom >"$stage/$name/share/doc/kd-preflight/kd-preflight.spdx.json"
mkdir -p "$folder"
tar --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" --mode=u=rwX,go=rX -C "$stage" -c "$name" |
	gzip -9n >"$folder/$name.tar.gz.tmp"
mv "$folder/$name.tar.gz.tmp" "$folder/$name.tar.gz"
(cd "$folder" && LC_ALL=C sha256sum "kd-preflight-$version"-linux-*.tar.gz >SHA256SUMS)
wc -c "$folder/$name.tar.gz"
