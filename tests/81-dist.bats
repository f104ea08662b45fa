#!/usr/bin/env bats
# make install, make dist: what is where, the bill of materials, and that a second build in another place is the same to
# the bit.

load helper

make_() { /usr/bin/make --no-print-directory -C "$TOP" "$@" >log 2>&1 || { cat log; return 1; }; }

# dist: one tarball of the tree's own build, made once; unpacked in $T/unpacked
dist() {
	DIST=$BATS_FILE_TMPDIR/dist
	[[ -e $DIST ]] || SOURCE_DATE_EPOCH=1700000000 make_ dist DIST="$DIST"
	TARBALL=$(echo "$DIST"/*.tar.gz)
	mkdir unpacked
	tar -xzf "$TARBALL" -C unpacked --strip-components=1
	SBOM=unpacked/share/doc/kd-preflight/kd-preflight.spdx.json
}

@test "make install: the files, their modes, PREFIX and DESTDIR; make uninstall leaves none" {
	umask 077
	make_ install PREFIX=/opt/kd DESTDIR="$T/a root"
	(cd "a root" && find opt -type f -printf '%m %p\n' | sort) >got
	diff - got <<-'E'
		644 opt/kd/share/doc/kd-preflight/LICENSE
		644 opt/kd/share/doc/kd-preflight/NOTICE
		644 opt/kd/share/kd-preflight/report.schema.json
		644 opt/kd/share/man/man1/kd-preflight.1
		755 opt/kd/bin/kd-preflight
	E
	cmp "$KD" "a root/opt/kd/bin/kd-preflight"
	make_ uninstall PREFIX=/opt/kd DESTDIR="$T/a root"
	is '' "$(find "a root" -type f -o -name 'kd-preflight*')"
}

@test "make dist: SHA256SUMS fits, the program runs, the licences and the manual are there" {
	dist
	(cd "$DIST" && sha256sum --check --strict --quiet SHA256SUMS)
	local version
	version=$("$KD" --version | awk '{ print $2 }')
	is "kd-preflight-$version-linux-$(uname -m).tar.gz" "${TARBALL##*/}"
	is "kd-preflight $version" "$(unpacked/bin/kd-preflight --version)"
	is 'root/root 2023-11-14' "$(TZ=UTC tar --list --verbose --file "$TARBALL" | awk '{ sub("^0/0$", "root/root", $2); print $2, $4 }' | sort -u)"
	for file in share/doc/kd-preflight/{LICENSE,NOTICE} share/man/man1/kd-preflight.1 share/kd-preflight/report.schema.json; do
		[[ -s unpacked/$file ]] || { echo "$file"; return 1; }
	done
}

@test "the SBOM names what is linked, with the pinned archives, and fits the program" {
	dist
	"$PYTHON" -I - "$SBOM" "$TOP/ci/sources.txt" unpacked/bin/kd-preflight <<-'E'
		import hashlib, json, sys
		sbom = json.load(open(sys.argv[1]))
		packages = {p["name"]: p for p in sbom["packages"]}
		pins = {w[0]: w for w in (line.split() for line in open(sys.argv[2])) if w and w[0] != "#"}
		sha256 = lambda name: packages[name]["checksums"][0]["checksumValue"]
		related = {(r["spdxElementId"], r["relationshipType"], r["relatedSpdxElement"]) for r in sbom["relationships"]}
		assert sbom["spdxVersion"] == "SPDX-2.3" and sbom["creationInfo"]["created"] == "2023-11-14T22:13:20Z"
		assert sha256("kd-preflight") == hashlib.sha256(open(sys.argv[3], "rb").read()).hexdigest()
		for name in pins:
		    assert packages[name]["versionInfo"] == pins[name][1] and sha256(name) == pins[name][3], name
		assert packages["cjson"]["licenseConcluded"] == packages["musl"]["licenseConcluded"] == "MIT"
		assert packages["musl"]["versionInfo"]
		for one in [("DOCUMENT", "DESCRIBES", "kd-preflight"), ("kd-preflight", "STATIC_LINK", "cjson"),
		            ("kd-preflight", "STATIC_LINK", "musl"), ("libseccomp", "BUILD_TOOL_OF", "kd-preflight")]:
		    assert ("SPDXRef-" + one[0], one[1], "SPDXRef-" + one[2]) in related, one
		assert {p["SPDXID"] for p in packages.values()} <= {word for one in related for word in (one[0], one[2])}
	E
}

@test "NOTICE has the notices of cJSON and musl in full; libseccomp is not linked" {
	diff --ignore-blank-lines "$TOP/build/deps/src/cjson/LICENSE" <(sed -n '/Dave Gamble/,/^THE SOFTWARE\.$/p' "$TOP/NOTICE")
	grep -q 'Rich Felker' "$TOP/NOTICE"
	is 2 "$(grep -c 'Permission is hereby granted, free of charge' "$TOP/NOTICE")"
	refute grep -q 'libseccomp' "$TOP/build/kd-preflight.map"
}

@test "no time to be had: make dist asks for SOURCE_DATE_EPOCH" {
	GIT_DIR=$T/none status=0
	export GIT_DIR
	/usr/bin/make -C "$TOP" dist DIST="$T/dist" >log 2>&1 || status=$?
	[[ $status -ne 0 && ! -e $T/dist ]]
	grep -q 'set SOURCE_DATE_EPOCH' log
}

@test "a second build, in another folder and environment, is the same: program and tarball" {
	dist
	local other="$T/second build of the same"
	mkdir "$other"
	tar -C "$TOP" --exclude=./build --exclude=./.git -c . | tar -C "$other" -x
	(cd "$other" && umask 027 && env -i PATH="$PATH" HOME=/nonexistent TZ=Asia/Tokyo LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH=1700000000 \
		KD_SOURCE_MIRROR="$TOP/build/deps/src" make --jobs="$(nproc)" dist >"$T/log" 2>&1) || { tail -n 30 log; return 1; }
	cmp "$KD" "$other/build/kd-preflight"
	cmp "$TARBALL" "$other/build/dist/${TARBALL##*/}"
	cmp "$DIST/SHA256SUMS" "$other/build/dist/SHA256SUMS"
}
