# kd-preflight. `make help` lists what there is; everything is built below build/. V=1 shows the commands, WERROR=1
# makes warnings errors.

VERSION := 0.1.0

MUSL_CC  ?= musl-gcc
HOST_CC  ?= gcc
BUILD_CC ?= musl-gcc
WERROR   ?=
Q        := $(if $(V),,@)
MULTIARCH := $(shell $(HOST_CC) -print-multiarch)
MACHINE  := $(firstword $(subst -, ,$(MULTIARCH)))
MUSL_LIB := /usr/lib/$(subst gnu,musl,$(MULTIARCH))

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef \
	    $(if $(WERROR),-Werror)
SIZE     := -Os -fPIE -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables -fno-unwind-tables
CPPFLAGS := -D_GNU_SOURCE -DKD_VERSION='"$(VERSION)"' -Isrc -I.
CFLAGS   := -std=c11 $(WARNINGS) $(SIZE) -fstack-protector-strong

# musl-gcc cannot link a static PIE, so its start files are named here: what reads a worker's words gets random addresses
# for 8 KB more. The linker is told to leave out everything that nothing refers to.
LINK := -nostartfiles -static -Wl,-pie,--no-dynamic-linker,-z,text,-z,relro,-z,now \
	-Wl,--gc-sections,--build-id=none,--fatal-warnings $(MUSL_LIB)/rcrt1.o $(MUSL_LIB)/crti.o
LINK_END := $(MUSL_LIB)/crtn.o

# --- everything but main.c is an archive, from which each unit test takes what it names
OBJECTS    := $(patsubst src/%.c,build/obj/%.o,$(filter-out src/main.c src/sandbox_generate.c,$(wildcard src/*.c))) \
	      build/obj/embed.o
UNIT       := $(patsubst tests/unit/%.c,build/unit/%,$(filter-out %/test_doubles.c,$(wildcard tests/unit/test_*.c)))
# test_sandbox_roads runs itself again inside the sandbox, where AddressSanitizer cannot start.
UNIT_ASAN  := $(patsubst build/unit/%,build/unit-asan/%,$(filter-out %/test_sandbox_roads,$(UNIT)))
LIBS       := build/deps/lib/libseccomp.a build/deps/lib/libcjson.a
LIBS_ASAN  := build/deps-asan/lib/libseccomp.a build/deps-asan/lib/libcjson.a
PROGRAMS   := $(patsubst tests/programs/%.c,build/programs/%,$(wildcard tests/programs/*.c)) build/programs/sandbox-attacker
DOUBLES    := build/doubles/cuda/libcuda.so.1 build/doubles/hip/libamdhip64.so.6
DOUBLED    := build/unit/test_doubles $(DOUBLES)
ASAN       := -std=c11 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

FUZZ_CC      ?= clang
FUZZ_SECONDS ?= 60
FUZZERS      := $(patsubst tests/fuzz/%.c,build/fuzz/%,$(wildcard tests/fuzz/*.c))
FUZZ_CFLAGS  := -std=c11 -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

.PHONY: all
all: build/kd-preflight ## build build/kd-preflight (default)

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1	\2/p' Makefile | expand -t 14

# --- what the machine needs

.PHONY: deps deps-run deps-test
deps: ## install what building needs; fetch and build libseccomp and cJSON for musl
	@ci/deps.sh build
	@$(MAKE) --silent $(LIBS)

deps-run: ## install Debian's PyTorch, to have something to check
	@ci/deps.sh run

deps-test: ## install what the tests need, too
	@ci/deps.sh build test
	@$(MAKE) --silent $(LIBS)

build/deps/src/.fetched: ci/fetch.sh ci/sources.txt
	@echo "  $@"
	$(Q)ci/fetch.sh $(@D)
	@touch $@

$(LIBS) &: build/deps/src/.fetched ci/libs.sh
	@echo "  $(LIBS)"
	$(Q)ci/libs.sh build/deps/src build/deps $(MUSL_CC) -std=gnu11 -w $(SIZE)

$(LIBS_ASAN) &: build/deps/src/.fetched ci/libs.sh
	@echo "  $(LIBS_ASAN)"
	$(Q)ci/libs.sh build/deps/src build/deps-asan $(HOST_CC) -w $(ASAN) -std=gnu11

# --- the program

build/kd-preflight: build/obj/main.o build/libkd.a build/deps/lib/libcjson.a
	@echo "  $@"
	$(Q)$(MUSL_CC) $(LINK) -s -Wl,-Map=$@.map -o $@.tmp $^ $(LINK_END)
	@! LC_ALL=C readelf -Wld $@.tmp | grep -E 'INTERP|\(NEEDED\)' || { echo "$@ is not static" >&2; exit 1; }
	@mv $@.tmp $@

build/libkd.a: $(OBJECTS)
	@echo "  $@"
	@rm -f $@
	$(Q)ar Dcr $@ $^

build/obj/%.o: src/%.c Makefile | $(LIBS)
	@echo "  $@"
	@mkdir -p $(@D)
	$(Q)$(MUSL_CC) $(CPPFLAGS) -isystem build/deps/include $(CFLAGS) -MMD -MP -c -o $@ $<

build/obj/embed.o: src/embed.S src/worker/probe.py build/kd-probe
	@echo "  $@"
	@mkdir -p $(@D)
	$(Q)$(HOST_CC) -I. -c -o $@ $<

# --- the sandbox's filters, compiled by libseccomp now, so that it is no part of the program: the generator runs here,
# for the machine that is built for, and where those differ needs a libseccomp of its own

GENERATE_DEPS := build/deps$(if $(filter $(MULTIARCH),$(shell gcc -print-multiarch)),,-build)

build/sandbox/filters.h: build/sandbox/generate Makefile
	@echo "  $@"
	$(Q)$< $(MACHINE) >$@.tmp
	@mv $@.tmp $@

build/sandbox/generate: $(addprefix src/sandbox_,generate.c compile.c policy.c compile.h policy.h seccomp.h) \
			$(GENERATE_DEPS)/lib/libseccomp.a
	@echo "  $@"
	@mkdir -p $(@D)
	$(Q)$(BUILD_CC) $(CPPFLAGS) -isystem $(GENERATE_DEPS)/include -std=c11 $(WARNINGS) -O1 -static -o $@ \
		$(filter %.c %.a,$^)

build/deps-build/lib/libseccomp.a: build/deps/src/.fetched ci/libs.sh
	@echo "  $@"
	$(Q)ci/libs.sh build/deps/src build/deps-build $(BUILD_CC) -std=gnu11 -w -O1

build/obj/sandbox_seccomp.o build/unit-asan/obj/sandbox_seccomp.o: build/sandbox/filters.h

# --- kd-probe, the native worker: no libc, so that one build runs under every one (src/worker/native_start.c)

PROBE_OBJECTS := $(patsubst %.c,build/probe/%.o,$(filter-out %/native_libdl.c,$(wildcard src/worker/native*.c)) kernels/check.c)
PROBE_CFLAGS  := -std=c11 $(WARNINGS) -Os -ffreestanding -fPIC -fvisibility=hidden -fno-plt -fno-stack-protector \
		 -fno-asynchronous-unwind-tables -fno-unwind-tables -ffunction-sections -fdata-sections -ffp-contract=off \
		 $(if $(filter aarch64,$(MACHINE)),-mno-outline-atomics,-fcf-protection=none) -Isrc/worker -Ikernels -Ibuild/kernels

# The oldest symbol version that glibc has on this machine.
PROBE_GLIBC := $(if $(filter aarch64,$(MACHINE)),GLIBC_2.17,GLIBC_2.2.5)

# No PT_INTERP: the supervisor names the loader; where there is none, the kernel starts it. Imports are bound at start.
PROBE_LINK := -pie -nostdlib -nostartfiles -Wl,--no-dynamic-linker,-z,now,-z,noexecstack,-z,noseparate-code \
	      -Wl,--hash-style=gnu,--build-id=none,--gc-sections,-e,_start

build/kd-probe: $(PROBE_OBJECTS) build/probe/libdl.so.2 build/probe/libc.so.6
	@echo "  $@"
	$(Q)$(HOST_CC) $(PROBE_LINK) -s -o $@ $(PROBE_OBJECTS) -Wl,--no-as-needed build/probe/libdl.so.2 build/probe/libc.so.6

build/probe/%.o: %.c Makefile build/kernels/images.h
	@echo "  $@"
	@mkdir -p $(@D)
	$(Q)$(HOST_CC) $(PROBE_CFLAGS) -MMD -MP -c -o $@ $<

# Stand-ins to link against, of which only names and symbol versions count. glibc before 2.34 keeps the functions in
# libdl; musl maps both names to itself.
build/probe/libdl.so.2: src/worker/native_libdl.c src/worker/native_libdl.map.in
	@mkdir -p $(@D)
	@sed 's/@VERSION@/$(PROBE_GLIBC)/' src/worker/native_libdl.map.in >build/probe/libdl.map
	$(Q)$(HOST_CC) -shared -nostdlib -ffreestanding -Wl,-soname,$(@F),--build-id=none,--version-script=build/probe/libdl.map \
		-o $@ $<

build/probe/libc.so.6:
	@mkdir -p $(@D)
	$(Q)$(HOST_CC) -shared -nostdlib -Wl,-soname,$(@F),--build-id=none -o $@ -x c /dev/null

# --- kernels: PTX for NVIDIA, one code object for each AMD target, and the header that carries them

GPU_CLANG     ?= clang-19
GPU_LLD       ?= ld.lld-19
GPU_CLANG_NEW ?= clang-22
GPU_LLD_NEW   ?= ld.lld-22

# kernels/architectures: target, code object version, least clang.
targets  = $(shell awk '!/^\#/ && NF && $(1) { print $$1 }' kernels/architectures)
HAVE_NEW := $(and $(shell command -v $(GPU_CLANG_NEW)),$(shell command -v $(GPU_LLD_NEW)))
AMD_NEW  := $(call targets,$$3 > 19)
AMD      := $(filter-out $(if $(HAVE_NEW),,$(AMD_NEW)),$(call targets,1))
CODE_OBJECTS := $(AMD:%=build/kernels/%.co)

# Exact arithmetic: no fast-math, no contraction. An attribute that a compiler does not know would leave us without
# kernels: clang 14 drops amdgpu_kernel with only a warning.
GPU_CFLAGS := -x c -std=c11 -O2 -ffp-contract=off -fno-fast-math -Wall -Wextra -Werror=unknown-attributes

# PTX ISA 6.0 loads on every driver since 384; the default of clang 19 (8.5) is refused by all before 555. Of the ways to
# say so only --cuda-feature has an effect for plain C.
PTX_CFLAGS := --target=nvptx64-nvidia-cuda -nostdinc -march=sm_50 --cuda-feature=+ptx60 -S

# --discard-all drops local symbols only (clang 22 adds a dozen of them a kernel); the kernels themselves must stay in
# .symtab, where ROCr finds them: never strip these files.
AMD_CFLAGS := --target=amdgcn-amd-amdhsa -nogpulib -Wl,--discard-all

# Comments are dropped, so that the driver gets (and the binary carries) instructions only.
build/kernels/check.ptx: kernels/check.c kernels/check.h
	@echo "  $@"
	@mkdir -p $(@D)
	$(Q)$(GPU_CLANG) $(PTX_CFLAGS) $(GPU_CFLAGS) -o $@.tmp $<
	@sed -e 's,[[:space:]]*//.*,,' -e '/^[[:space:]]*$$/d' $@.tmp >$@
	@rm $@.tmp

build/kernels/%.co: kernels/check.c kernels/check.h kernels/architectures
	@echo "  $@"
	@mkdir -p $(@D)
	$(Q)$(if $(filter $*,$(AMD_NEW)),$(GPU_CLANG_NEW) --ld-path=$(shell command -v $(GPU_LLD_NEW)),$(GPU_CLANG) \
		--ld-path=$(shell command -v $(GPU_LLD))) $(AMD_CFLAGS) $(GPU_CFLAGS) -mcpu=$* \
		-mcode-object-version=$(shell awk '$$1 == "$*" { print $$2 }' kernels/architectures) -o $@ $<

build/kernels/images.h: kernels/embed.sh build/kernels/check.ptx $(CODE_OBJECTS)
	@echo "  $@"
	$(if $(HAVE_NEW),,@echo "  kernels: no $(GPU_CLANG_NEW) here: left out $(AMD_NEW)")
	@kernels/embed.sh build/kernels/check.ptx $(foreach a,$(AMD),$(a)=build/kernels/$(a).co) >$@.tmp
	@mv $@.tmp $@

.PHONY: check-ptx
check-ptx: build/kernels/check.ptx ## assemble the PTX with every CUDA toolkit found, for each of its targets
	@kernels/check-ptx.sh $< $(PTXAS)

# --- tests

.PHONY: test
test: all $(FUZZERS) $(UNIT) $(DOUBLED) $(PROGRAMS) ## run every test: the unit tests, then tests/*.bats
	@tests/run.sh $(UNIT) '$(DOUBLED)' $(wildcard tests/*.bats)

.PHONY: unit
unit: $(UNIT) $(DOUBLED) ## run the unit tests
	@tests/run.sh $(UNIT) '$(DOUBLED)'

.PHONY: bats
bats: all $(FUZZERS) $(DOUBLES) $(PROGRAMS) ## run tests/*.bats against the program
	@tests/run.sh $(wildcard tests/*.bats)

.PHONY: asan
asan: $(UNIT_ASAN) ## run the unit tests under AddressSanitizer and UBSan
	@tests/run.sh $(UNIT_ASAN)

build/unit/%: tests/unit/%.c build/libkd.a $(LIBS) Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(MUSL_CC) $(CPPFLAGS) -isystem build/deps/include $(CFLAGS) $(LINK) -MMD -MP -o $@ $< build/libkd.a $(LIBS) $(LINK_END)

build/unit-asan/%: tests/unit/%.c build/unit-asan/libkd.a $(LIBS_ASAN) Makefile
	@echo "  $@"
	$(Q)$(HOST_CC) $(CPPFLAGS) -isystem build/deps-asan/include $(ASAN) -MMD -MP -o $@ $< build/unit-asan/libkd.a $(LIBS_ASAN)

build/unit-asan/libkd.a: $(OBJECTS:build/obj/%=build/unit-asan/obj/%)
	@rm -f $@
	@echo "  $@"
	$(Q)ar Dcr $@ $^

build/unit-asan/obj/%.o: src/%.c Makefile | $(LIBS_ASAN)
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(HOST_CC) $(CPPFLAGS) -isystem build/deps-asan/include $(ASAN) -MMD -MP -c -o $@ $<

build/unit-asan/obj/embed.o: build/obj/embed.o
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)cp $< $@

# Programs that tests start, as workloads and otherwise: static, so that they run in any root.
build/programs/%: tests/programs/%.c Makefile
	@echo "  $@"
	@mkdir -p $(@D)
	$(Q)$(HOST_CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) -O2 -static -MMD -MP -o $@ $<

build/programs/sandbox-attacker: tests/sandbox-attacker.c build/libkd.a $(LIBS) Makefile
	@echo "  $@"
	@mkdir -p $(@D)
	$(Q)$(MUSL_CC) $(CPPFLAGS) -isystem build/deps/include $(CFLAGS) $(LINK) -MMD -MP -o $@ $< build/libkd.a $(LIBS) $(LINK_END)

# Driver libraries that compute, or fail, as a test asks (tests/doubles/); for glibc, as the real ones are.
DOUBLE_SOURCES := tests/doubles/double.c tests/doubles/fault.c tests/doubles/mask.c kernels/check.c
DOUBLE_CFLAGS  := -std=c11 -D_GNU_SOURCE $(WARNINGS) -O2 -g -fPIC -ffp-contract=off

build/doubles/cuda/libcuda.so.1: tests/doubles/cuda.c
build/doubles/hip/libamdhip64.so.6: tests/doubles/hip.c
$(DOUBLES): $(DOUBLE_SOURCES) tests/doubles/double.h kernels/check.h build/kernels/images.h
	@echo "  $@"
	@mkdir -p $(@D)
	$(Q)$(HOST_CC) $(DOUBLE_CFLAGS) -fvisibility=hidden -shared -Wl,-soname,$(@F),-z,defs -o $@ $(filter %.c,$^)

build/unit/test_doubles: tests/unit/test_doubles.c tests/unit/tap.h kernels/check.h build/kernels/images.h
	@echo "  $@"
	@mkdir -p $(@D)
	$(Q)$(HOST_CC) $(DOUBLE_CFLAGS) -o $@ $< -ldl

.PHONY: format
format: ## let clang-format lay out the C sources
	@clang-format -i $(wildcard src/*.[ch] src/worker/*.[ch] kernels/*.[ch] tests/*/*.[ch])

.PHONY: images
images: all ## build the container images, print their sizes (ENGINE, BASE_INIT, BASE_PYTORCH, BASE_CPU_CI)
	@images/build.sh

# --- to other machines

PREFIX  ?= /usr/local
DESTDIR ?=
DIST    ?= build/dist
MUSL_VERSION = $(shell dpkg-query -W -f '$${Version}' musl-dev)
GCC_VERSION  = $(shell $(HOST_CC) -dumpfullversion)

# File installed, where, with what mode.
INSTALLED := build/kd-preflight:bin:755 src/kd-preflight.1:share/man/man1:644 src/report.schema.json:share/kd-preflight:644 \
	     LICENSE:share/doc/kd-preflight:644 NOTICE:share/doc/kd-preflight:644
field = $(word $(1),$(subst :, ,$(2)))
place = '$(DESTDIR)$(PREFIX)/$(call field,2,$(1))/$(notdir $(call field,1,$(1)))'

.PHONY: install
install: all ## install program, man page, schema and licences below PREFIX (/usr/local), in DESTDIR
	$(Q)$(foreach i,$(INSTALLED),install -D -m $(call field,3,$(i)) $(call field,1,$(i)) $(call place,$(i)) &&) true

.PHONY: uninstall
uninstall: ## remove what `make install` put there
	$(Q)rm -f $(foreach i,$(INSTALLED),$(call place,$(i)))
	$(Q)cd '$(DESTDIR)$(PREFIX)' && rmdir --ignore-fail-on-non-empty share/kd-preflight share/doc/kd-preflight

.PHONY: dist
dist: all ## make build/dist/: a tarball to install from, SHA256SUMS
	$(Q)ci/dist.sh $(DIST) $(VERSION) $(MACHINE) '$(MUSL_VERSION)' $(GCC_VERSION)

# aarch64, on another machine: needs `ci/deps.sh cross`
.PHONY: aarch64 dist-aarch64 check-aarch64
aarch64: build/deps/src/.fetched build/kernels/images.h ## cross build: build/aarch64/build/kd-preflight
	+@ci/cross.sh aarch64 all

dist-aarch64: aarch64 ## the same as `make dist`, cross built
	+@ci/cross.sh aarch64 dist DIST='$(abspath $(DIST))'

check-aarch64: aarch64 ## run the cross build under qemu's user emulation, and on an emulated machine (about 3 minutes)
	+@ci/cross.sh aarch64 $(UNIT) $(DOUBLED)
	@tests/run.sh tests/rigs/aarch64.sh

# --- fuzzing: libFuzzer over what reads hostile input (tests/fuzz/), with AddressSanitizer and UBSan

.PHONY: fuzz
fuzz: $(FUZZERS) ## fuzz each reader for FUZZ_SECONDS (60) seconds
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run.sh tests/53-fuzz.bats

build/fuzz/%: tests/fuzz/%.c build/fuzz/libkd.a Makefile
	@echo "  $@"
	$(Q)$(FUZZ_CC) $(CPPFLAGS) -isystem build/deps/include $(FUZZ_CFLAGS) -fsanitize=fuzzer -MMD -MP -o $@ $< build/fuzz/libkd.a

build/fuzz/libkd.a: $(patsubst build/obj/%,build/fuzz/obj/%,$(filter-out %/embed.o,$(OBJECTS))) build/fuzz/obj/cJSON.o build/obj/embed.o
	@rm -f $@
	@echo "  $@"
	$(Q)ar Dcr $@ $^

build/fuzz/obj/%.o: src/%.c Makefile | $(LIBS)
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(FUZZ_CC) $(CPPFLAGS) -isystem build/deps/include $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

build/fuzz/obj/cJSON.o: $(LIBS)
	@mkdir -p $(@D)
	@echo "  $@"
	$(Q)$(FUZZ_CC) -std=gnu11 -w $(filter-out -std=c11,$(FUZZ_CFLAGS)) -fsanitize=fuzzer-no-link -c -o $@ build/deps/src/cjson/cJSON.c

build/fuzz/obj/sandbox_seccomp.o: build/sandbox/filters.h

# --- targets beside CI's: they take minutes, or fetch several GB

.PHONY: fault-injection
fault-injection: all $(PROGRAMS) ## fail and kill every system call of the supervisor once, all of them (about 5 minutes)
	@/usr/bin/python3 tests/51-fault-injection.py --full --jobs 3

.PHONY: coverage
coverage: all $(DOUBLES) $(PROGRAMS) ## line coverage of src/, from the unit tests and a subset of tests/*.bats (about 6 minutes)
	@COVERAGE_MIN=$(COVERAGE_MIN) ci/coverage.sh

.PHONY: valgrind
valgrind: all ## the supervisor under valgrind: errors, leaks, descriptors
	@tests/run.sh ci/valgrind.sh

.PHONY: real-drivers
real-drivers: all build/kernels/check.ptx ## run against the real driver libraries of Debian's suites, without a card
	@tests/63-real-drivers.sh
	@tests/rigs/ptx-jit.sh build/kernels/check.ptx

.PHONY: syscalls
syscalls: all $(PROGRAMS) ## hold the system calls of real PyTorch and driver libraries against the allow-list
	@tests/rigs/syscalls.sh $(PYTHONS)

.PHONY: old-kernel
old-kernel: all build/unit/test_sandbox build/unit/test_sandbox_roads build/unit/test_output build/unit/test_workload $(DOUBLES) ## check on Debian's Linux 5.10, emulated
	@tests/run.sh tests/rigs/old-kernel.sh

.PHONY: hip-model
hip-model: build/kernels/images.h ## run the AMD code objects through the real HIP 7 runtime on a modelled device
	@tests/rigs/hip-model.sh

.PHONY: cuda-wheel
cuda-wheel: all ## run against PyTorch's own CUDA wheel, without a card
	@tests/rigs/cuda-wheel.sh

.PHONY: lint
lint: $(LIBS) build/kernels/images.h build/sandbox/filters.h ## run the checks of ci/lint.sh
	@tests/run.sh ci/lint.sh

# --- numbers

.PHONY: bench
bench: all build/noop ## what a check costs, as ratios (hyperfine)
	@tests/bench/run.sh

build/noop: tests/bench/noop.c
	@echo "  $@"
	$(Q)$(MUSL_CC) -Os -s $(LINK) -o $@ $< $(LINK_END)

.PHONY: size
size: all ## bytes of the program and of what it carries
	@wc -c build/kd-preflight build/kd-probe src/worker/probe.py | head -n 3

.PHONY: clean
clean: ## remove build/
	rm -rf build

-include $(wildcard $(addprefix build/,fuzz/*.d fuzz/obj/*.d obj/*.d probe/*/*.d probe/*/*/*.d unit/*.d unit-asan/*.d unit-asan/obj/*.d programs/*.d))
