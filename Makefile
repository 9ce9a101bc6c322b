# Larder. `make run` shows it at work on real input, `make test` proves it; both install what is missing.
#
#   make run          install what is missing, build, and show the main job step by step
#   make serve        build and leave a daemon running to play with; make stop ends it
#   make test         install what is missing and run every test
#   make bench        measure, side by side with redis-server, memcached, raw LevelDB, SQLite and diskcache: over an hour;
#                     make bench-quick takes some five minutes; SUITES=socket,hits measures only these
#   make bench-page   as make bench, and writes the tables into docs/Benchmarks.md
#   make install      install larderd, larderctl and larderweb below PREFIX (/usr/local), with manual pages, completion for shells, the units of systemd and
#                     SYSCONFDIR/larder/larderd.conf (/etc), unless it is there already; make install-files without programs
#   make deb          a Debian package, below .build/deb; make deb-test installs, uses, upgrades and removes it in a new system
#   make service-test a day in its life under systemd, in a new system; the application writes for FILL_SECONDS
#   make format       format the sources and check their style
#   make docs         write the generated documentation anew
#   make html         the docs as a site, and the API reference of Larder and LarderClient, below .build/html
#   make check        lint, the tests, and both sanitizers: about an hour
#   make tsan asan    the tests under the thread and the address sanitizer
#   make fuzz         the protocol codec, the reader of damaged databases and the bridge to Lua under libFuzzer
#                     (FUZZ_SECONDS each)
#   make hostile      hostile clients at full size: ten thousand connections, values of 512 MiB, a million words
#   make crash power  accidents of recorded daemons: SIGKILL and failing calls, power cuts; ROUNDS points of each
#   make disk         a long random history under a limit of the disk, and kill -9 while it evicts (ROUNDS)
#   make fleet        two larders in front of a Redis Cluster, whose nodes and links break: ROUNDS of each kind
#   make valkey       the tests of origins with a valkey-server (Debian's, of its backports) in place of redis-server, and as
#                     make fleet before a cluster of it
#   make planted      the strength of the tests: defects in a copy of the package, one after the other, and which of them the
#                     tests find (PLANTED: the numbers of some)
#   make kill         hundreds of rounds of kill -9 under load (ROUNDS), the model test over many seeds (ROUNDS)

SHELL = /bin/bash
SWIFT ?= swift
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
ROUNDS ?= 300
FUZZ_SECONDS ?= 300
# Warnings are errors here; elsewhere a newer compiler's new warning breaks nobody's build.
export LARDER_STRICT = 1

# What must be there to build, to show, to test, to measure.
BUILD_PACKAGES = g++ libleveldb-dev libsnappy-dev libuv1-dev libxxhash-dev libjemalloc-dev \
  liblua5.1-0-dev lua-cjson-dev lua-bitop-dev libmd-dev libssl-dev libedit-dev libmicrohttpd-dev
TOUR_PACKAGES = netcat-openbsd redis-server redis-tools python3 gcc libc6-dev
TEST_PACKAGES = $(TOUR_PACKAGES) python3-markdown openssl iproute2 graphviz groff-base bash zsh fish systemd redis-server python3-venv prometheus chromium $(CLIENT_PACKAGES)
# Clients in other languages, each with what runs it.
CLIENT_PACKAGES = libhiredis-dev nodejs node-redis php-cli php-redis ruby ruby-redis perl libredis-perl \
  php-illuminate-cache php-illuminate-redis php-predis php-symfony-cache php-symfony-lock php-symfony-rate-limiter \
  ruby-activesupport ruby-rack ruby-rack-attack
BENCH_PACKAGES = redis-server redis-tools memcached libsqlite3-0 python3-venv

SUDO = $(shell [ "$$(id -u)" = 0 ] || echo sudo)
# Runs apt-get when no other one does, waiting up to ten minutes for it: apt itself waits for some of its locks only.
APT = apt_in_turn() { for try in $$(seq 120); do \
  text=$$($(SUDO) env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -o DPkg::Lock::Timeout=600 "$$@" 2>&1 >/dev/null) && return; \
  case "$$text" in *"Could not get lock"*|*"Unable to lock"*) [ $$try != 1 ] || echo "waiting for another apt"; sleep 5;; \
    *) echo "$$text"; return 1;; esac; done; echo "$$text"; return 1; };
# Installs what is missing of the packages named after it, and nothing where all are there.
INSTALL = $(APT) install_missing() { missing=""; for p in "$$@"; do \
  dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
  if [ -n "$$missing" ]; then echo "installing:$$missing"; \
  apt_in_turn update -qq && apt_in_turn install -y -qq --no-install-recommends $$missing; fi; }; install_missing

.PHONY: deps build release run serve stop test bench bench-quick bench-page install format lint docs tsan asan fuzz kill hostile clean

deps:
	@$(INSTALL) $(BUILD_PACKAGES)

build: deps
	$(SWIFT) build

release: deps
	$(SWIFT) build -c release --product larderd
	$(SWIFT) build -c release --product larderctl
	$(SWIFT) build -c release --product larderweb

run: deps
	@$(INSTALL) $(TOUR_PACKAGES)
	Examples/tour.sh

# The defaults of larderd and larderctl, so that larderctl finds the daemon without being told where.
serve: release
	@.build/release/larderctl ping >/dev/null 2>&1 && echo "a daemon is running already" || { \
	  nohup .build/release/larderd >>.build/larderd.log 2>&1 & \
	  for i in $$(seq 50); do .build/release/larderctl ping >/dev/null 2>&1 && break; sleep 0.1; done; \
	  .build/release/larderctl ping >/dev/null && echo "larderd is running; its log: .build/larderd.log"; }
	@echo "try:   .build/release/larderctl set greeting hello && .build/release/larderctl get greeting"
	@echo "stop:  make stop"

stop:
	-.build/release/larderctl SHUTDOWN

VENV = .build/venv
$(VENV)/bin/python:
	python3 -m venv $(VENV)

# Clients and frameworks in Python that the tests use.
PYTHON_PACKAGES = redis django flask-caching dogpile.cache celery django-redis aiocache pottery limits flask-limiter slowapi \
  cashews litestar fastapi fastapi-cache2 httpx
PYTHON_MODULES = redis django flask_caching dogpile.cache celery django_redis aiocache pottery limits flask_limiter slowapi \
  cashews litestar fastapi fastapi_cache httpx

# Packages of Debian's before anything else, since only one can install at a time.
.PHONY: test-packages test-python test-build test-deps
test-packages: deps
	@$(INSTALL) $(TEST_PACKAGES)

test-python: test-packages
	@$(MAKE) --no-print-directory $(VENV)/bin/python
	@$(VENV)/bin/python -c 'import sys; from importlib.util import find_spec; sys.exit(not all(map(find_spec, sys.argv[1:])))' \
	  $(PYTHON_MODULES) 2>/dev/null || \
	  $(VENV)/bin/python -m pip install -q --disable-pip-version-check $(PYTHON_PACKAGES)

test-build: test-packages
	$(SWIFT) build --build-tests

test-deps: test-packages test-python

# All tests at once would keep those that wait for something waiting for all others.
test: export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH = 8

# Python's packages come over the network while the compiler works.
test:
	@$(MAKE) --no-print-directory -j2 test-python test-build
	@set -o pipefail; $(SWIFT) test --skip-build --disable-xctest 2>&1 | tee .build/test.log || \
	  { echo; echo "What failed (all of it: .build/test.log):"; grep -aE -A4 'recorded an issue|Fatal error|unexpected signal' .build/test.log | cut -c1-400; \
	    exit 1; }

.PHONY: bench-deps
bench-deps: deps
	@$(INSTALL) $(BENCH_PACKAGES)
	@$(MAKE) --no-print-directory $(VENV)/bin/python
	@$(VENV)/bin/python -c 'import diskcache' 2>/dev/null || $(VENV)/bin/python -m pip install -q diskcache || \
	  echo "diskcache cannot be installed: its rows will be missing"
	$(SWIFT) build -c release --product larderd
	$(SWIFT) build -c release --product larderbench

BENCH = .build/release/larderbench --json .build/bench.json $(if $(SUITES),--only $(SUITES))

bench: bench-deps
	$(BENCH)

bench-quick: bench-deps
	$(BENCH) --quick

bench-page: bench-deps
	$(BENCH) --page docs/Benchmarks.md

.PHONY: install-files
install: deps
	$(SWIFT) build -c release --static-swift-stdlib --scratch-path .build/install --product larderd
	$(SWIFT) build -c release --static-swift-stdlib --scratch-path .build/install --product larderctl
	$(SWIFT) build -c release --static-swift-stdlib --scratch-path .build/install --product larderweb
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(addprefix .build/install/release/,larderd larderctl larderweb) $(DESTDIR)$(PREFIX)/bin
	@$(MAKE) --no-print-directory install-files
	@[ -n "$(DESTDIR)" ] || ! [ -d /run/systemd/system ] || \
	  echo "to run it as a service: systemd-sysusers && systemctl daemon-reload && systemctl enable --now larderd.socket"

# The service's files, with the place of the programs in them.
install_with_paths = sed 's|/usr/bin/larder|$(PREFIX)/bin/larder|; s|=-/etc/larder|=-$(SYSCONFDIR)/larder|' $(1) >$(2)/$(notdir $(1)) \
  && chmod 644 $(2)/$(notdir $(1))
SYSTEM_UNITS = $(DESTDIR)$(PREFIX)/lib/systemd/system
USER_UNITS = $(DESTDIR)$(PREFIX)/lib/systemd/user
SHARE = $(DESTDIR)$(PREFIX)/share
install-files:
	install -d $(SYSTEM_UNITS) $(USER_UNITS) $(DESTDIR)$(PREFIX)/lib/sysusers.d $(foreach n,1 7 8,$(SHARE)/man/man$n) \
	  $(SHARE)/bash-completion/completions $(SHARE)/zsh/vendor-completions $(SHARE)/fish/vendor_completions.d \
	  $(DESTDIR)$(PREFIX)/share/doc/larder $(DESTDIR)$(SYSCONFDIR)/larder
	install -m 644 Sources/packaging/systemd/larderd.socket $(SYSTEM_UNITS)
	install -m 644 Sources/packaging/systemd/user/larderd.socket $(USER_UNITS)
	$(call install_with_paths,Sources/packaging/systemd/larderd.service,$(SYSTEM_UNITS))
	$(call install_with_paths,Sources/packaging/systemd/user/larderd.service,$(USER_UNITS))
	$(call install_with_paths,Sources/packaging/systemd/larderweb.service,$(SYSTEM_UNITS))
	$(call install_with_paths,Sources/packaging/systemd/user/larderweb.service,$(USER_UNITS))
	install -m 644 Sources/System/CLarderWebPages/Pages/chart/LICENSE.md $(DESTDIR)$(PREFIX)/share/doc/larder/chart.js.LICENSE.md
	$(call install_with_paths,Sources/packaging/launchd/larder.larderd.plist,$(DESTDIR)$(PREFIX)/share/doc/larder)
	install -d $(SHARE)/doc/larder/larderd.service.d
	install -m 644 Sources/packaging/systemd/larderd.service.d/origins.conf $(SHARE)/doc/larder/larderd.service.d
	install -m 644 Sources/packaging/sysusers.d/larder.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d
	$(foreach n,1 7 8,install -m 644 Sources/packaging/man/*.$n $(SHARE)/man/man$n;)
	$(foreach n,larderd larderctl larderweb,install -m 644 Sources/packaging/completions/$n.bash $(SHARE)/bash-completion/completions/$n;)
	install -m 644 Sources/packaging/completions/_larder* $(SHARE)/zsh/vendor-completions
	install -m 644 Sources/packaging/completions/*.fish $(SHARE)/fish/vendor_completions.d
	[ -e $(DESTDIR)$(SYSCONFDIR)/larder/larderd.conf ] || \
	  install -m 644 Sources/packaging/larderd.conf $(DESTDIR)$(SYSCONFDIR)/larder

# In a directory of its own, because dpkg wants `debian` at the root and writes there.
DEB = .build/deb/larder
.PHONY: deb deb-test service-test
deb: deps
	@$(INSTALL) debhelper dpkg-dev lintian
	rm -rf .build/deb && mkdir -p $(DEB) && cp -r Sources/packaging/debian $(DEB)
	cd $(DEB) && LARDER=$(CURDIR) dpkg-buildpackage --build=binary --unsigned-changes
	lintian --fail-on error,warning .build/deb/*.changes
	@ls .build/deb/*.deb

deb-test: deb
	@$(INSTALL) mmdebstrap python3
	Sources/packaging/test-package.sh .build/deb

service-test: deb
	@$(INSTALL) mmdebstrap python3 prometheus chromium redis-server redis-tools
	Sources/packaging/test-service.sh .build/deb

format:
	$(SWIFT) format --recursive --in-place --parallel Package.swift Sources Tests Examples
	$(MAKE) --no-print-directory lint

lint:
	$(SWIFT) format lint --recursive --strict --parallel Package.swift Sources Tests Examples

.PHONY: check
check: lint
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory asan
	@$(MAKE) --no-print-directory tsan

docs: test-deps
	$(SWIFT) build --build-tests
	LARDER_UPDATE_DOCS=1 $(SWIFT) test --skip-build --disable-xctest --filter "DocsTests|ArchitectureTests"

.PHONY: html
html: deps
	@$(INSTALL) python3-markdown
	/usr/bin/python3 docs/site.py .build/html
	$(SWIFT) build --product larderctl
	$(SWIFT) build --target Larder
	docs/html.sh .build/debug .build/html
	@echo "to read it: .build/html/index.html; the API: python3 -m http.server -d .build/html,"
	@echo "then http://localhost:8000/Larder/documentation/larder/"

# Threads that live as long as the process are not joined, and no leak.
tsan: test-deps
	LARDER_SYSTEM_MALLOC=1 LARDER_SANITIZED=1 TSAN_OPTIONS="report_thread_leaks=0 suppressions=$(CURDIR)/Tests/tsan.suppressions" $(SWIFT) test --no-parallel --disable-xctest --sanitize=thread --scratch-path .build/tsan

# One test after the other: slowed down and all at once, they would exceed their time limits.
# Without a search for leaks: what lives as long as the process, such as threads that are not joined, counts as one.
asan: test-deps
	LARDER_SYSTEM_MALLOC=1 LARDER_SANITIZED=1 ASAN_OPTIONS=detect_leaks=0 $(SWIFT) test --no-parallel --disable-xctest --sanitize=address --scratch-path .build/asan

kill: test-deps
	$(SWIFT) build --build-tests
	LARDER_KILL_ROUNDS=$(ROUNDS) LARDER_ROUNDS=$(ROUNDS) $(SWIFT) test --skip-build --disable-xctest --filter 'Kill|Model'

# A seed that found something is told with how to repeat it: LARDER_SEED=… LARDER_POINT=… make crash.
.PHONY: crash power
crash power: deps
	@$(INSTALL) gcc libc6-dev
	$(SWIFT) build -c release --product larderaccidents
	.build/release/larderaccidents $@ $(ROUNDS)

# In a copy, so that no defect ever stands in Sources.
.PHONY: planted
planted: test-packages
	python3 Tests/Planted/planted.py $(PLANTED)

.PHONY: disk
disk: test-deps
	$(SWIFT) build --build-tests
	LARDER_DISK_ROUNDS=$(ROUNDS) LARDER_KILL_ROUNDS=$(ROUNDS) $(SWIFT) test --skip-build --disable-xctest \
	  --filter 'DiskHistoryTests|DaemonDiskBudgetTests'

.PHONY: fleet
fleet: test-deps
	$(SWIFT) build --build-tests
	LARDER_FLEET_ROUNDS=$(ROUNDS) $(SWIFT) test --skip-build --disable-xctest --filter 'FleetTests|NetworkLinkTests'

.PHONY: valkey
valkey: test-deps
	@$(INSTALL) libatomic1 libjemalloc2 liblzf1 libssl3
	$(SWIFT) build --build-tests
	program="$$(Tests/valkey.sh .build/valkey)" && LARDER_ORIGIN_SERVER="$$program" LARDER_FLEET_ROUNDS=$(ROUNDS) \
	  $(SWIFT) test --skip-build --disable-xctest --filter 'Origins|Origin|Outbox|RedisCluster|LarderctlRedis|FleetTests|NetworkLink'

hostile: test-deps
	$(SWIFT) build --build-tests
	ulimit -n "$$(ulimit -Hn)"; LARDER_HOSTILE=1 $(SWIFT) test --skip-build --disable-xctest --filter Hostile

# libFuzzer's inputs under AddressSanitizer, FUZZ_SECONDS for each of the parsers of the protocol and for the reader of damaged files.
FUZZ_RUN = SWIFT_BACKTRACE=enable=no .build/fuzz/$$name -max_total_time=$(FUZZ_SECONDS) \
  -artifact_prefix=.build/fuzz/$$name- -verbosity=0 -print_final_stats=1
FUZZ_BUILD = swiftc -O -parse-as-library -swift-version 6 -package-name larder -sanitize=fuzzer,address -use-ld=lld

fuzz: deps
	@for name in Request Reply; do \
	  mkdir -p .build/fuzz/$$name.corpus && \
	  $(FUZZ_BUILD) Sources/Shared/LarderRESP/*.swift Tests/Fuzz/$${name}Fuzz.swift -o .build/fuzz/$$name && \
	  $(FUZZ_RUN) -max_len=4096 -dict=Tests/Fuzz/resp.dict .build/fuzz/$$name.corpus || exit 1; \
	done
	@name=Salvage; mkdir -p .build/fuzz/$$name.corpus && \
	  clang -c -O2 -ISources/System/CLarderCRC32C/include Sources/System/CLarderCRC32C/crc32c.c -o .build/fuzz/crc32c.o && \
	  echo 'module CLarderCRC32C { header "$(CURDIR)/Sources/System/CLarderCRC32C/include/ccrc32c.h" }' >.build/fuzz/module.modulemap && \
	  swiftc -O -parse-as-library -swift-version 6 -package-name larder -module-name LarderPlatform -wmo -c \
	    -emit-module-path .build/fuzz/LarderPlatform.swiftmodule $$(find Sources/Shared/LarderPlatform -name '*.swift') -o .build/fuzz/platform.o && \
	  $(FUZZ_BUILD) -I.build/fuzz -ISources/System/CLarderSnappy $$(find Sources/Engine/LarderLevelDBSalvage -name '*.swift') Tests/Fuzz/SalvageFuzz.swift \
	    .build/fuzz/crc32c.o .build/fuzz/platform.o -o .build/fuzz/$$name && \
	  n=0; for file in $$(find Tests/LarderEngineTests/Golden -name '*.ldb' -o -name '00*.log' -o -name 'MANIFEST-*'); do \
	    case $$file in *.log) kinds='0 20 60';; *.ldb) kinds='2';; *) kinds='1 21';; esac; \
	    for kind in $$kinds; do n=$$((n + 1)); \
	      { printf "\\$$kind"; cat $$file; } >.build/fuzz/$$name.corpus/seed-$$n; done; done; \
	  $(FUZZ_RUN) -max_len=16384 .build/fuzz/$$name.corpus
	@name=Script; mkdir -p .build/fuzz/$$name.corpus && \
	  python3 Tests/Fuzz/script_seeds.py .build/fuzz/$$name.corpus && \
	  clang -O1 -g -fsanitize=fuzzer,address,undefined -fuse-ld=lld -ISources/System/CLarderLuaBridge/include \
	    $$(pkg-config --cflags lua5.1) Sources/System/CLarderLuaBridge/*.c Tests/Fuzz/ScriptFuzz.c -o .build/fuzz/$$name \
	    $$(pkg-config --libs lua5.1) -llua5.1-cjson -llua5.1-bitop -lm && \
	  $(FUZZ_RUN) -max_len=2048 .build/fuzz/$$name.corpus

clean:
	rm -rf .build
