# Larder. `make run` demonstrates it on real input, `make test` and `make proofs` test it; all install missing packages.
#
#   make run          build, and run the guided tour
#   make serve        build and start a daemon to try out; make stop stops it
#   make test         the tests without the proofs; make unit: only those of the engine, the library and the protocol
#   make proofs       accidents, kills, fleets, clients in other languages, browsers: see Tests/proofs.mk, which also has targets for
#                     each group, and long runs of hours: kill crash power disk queries leaderboard fleet valkey
#                     hostile tsan asan steady
#   make bench        compare with redis-server, Valkey, memcached, raw LevelDB, SQLite and diskcache: many hours on an idle
#                     machine; make bench-quick takes some twenty minutes; SUITES=socket,hits measures only these
#   make bench-page   as make bench, and writes the tables into docs/Benchmarks.md
#   make install      install below PREFIX; make deb, dist, image: a Debian package, a tarball, an image for containers:
#                     Sources/packaging/packaging.mk
#   make fuzz         the parsers and the bridge to Lua under libFuzzer: Tests/Fuzz/fuzz.mk
#   make format       format the sources and check their style
#   make docs         regenerate the generated documentation
#   make html         the docs as a site, and the API reference of Larder and LarderClient, below .build/html
#   make check        lint, tests, proofs, and both sanitizers: over an hour

SHELL = /bin/bash
SWIFT ?= swift
ROUNDS ?= 300
# Warnings are errors only here, so that new warnings of a newer compiler do not break the builds of users.
export LARDER_STRICT = 1
export SWIFT

# The packages needed by the build, the tour, the tests, the proofs and the benchmark.
BUILD_PACKAGES = g++ libleveldb-dev libsnappy-dev libuv1-dev libxxhash-dev libjemalloc-dev \
  liblua5.1-0-dev lua-cjson-dev lua-bitop-dev libmd-dev libssl-dev libedit-dev libmicrohttpd-dev
TOUR_PACKAGES = netcat-openbsd redis-server redis-tools python3 gcc libc6-dev
TEST_PACKAGES = netcat-openbsd redis-server redis-tools python3 python3-markdown python3-yaml openssl iproute2 graphviz groff-base bash zsh fish systemd
PROOF_PACKAGES = $(TOUR_PACKAGES) python3-venv prometheus chromium buildah ca-certificates jq $(CLIENT_PACKAGES)
# Clients in other languages, each with its interpreter.
CLIENT_PACKAGES = libhiredis-dev nodejs node-redis php-cli php-redis ruby ruby-redis perl libredis-perl \
  php-illuminate-cache php-illuminate-redis php-predis php-symfony-cache php-symfony-lock php-symfony-rate-limiter \
  ruby-activesupport ruby-rack ruby-rack-attack

SUDO = $(shell [ "$$(id -u)" = 0 ] || echo sudo)
# Runs apt-get after waiting up to ten minutes for other instances: apt itself waits only for some of its locks.
APT = apt_in_turn() { for try in $$(seq 120); do \
  text=$$($(SUDO) env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -o DPkg::Lock::Timeout=600 "$$@" 2>&1 >/dev/null) && return; \
  case "$$text" in *"Could not get lock"*|*"Unable to lock"*) [ $$try != 1 ] || echo "waiting for another apt"; sleep 5;; \
    *) echo "$$text"; return 1;; esac; done; echo "$$text"; return 1; };
# Installs the missing ones of the packages given as arguments.
INSTALL = $(APT) install_missing() { missing=""; for p in "$$@"; do \
  dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
  if [ -n "$$missing" ]; then echo "installing:$$missing"; \
  apt_in_turn update -qq && apt_in_turn install -y -qq --no-install-recommends $$missing; fi; }; install_missing

.PHONY: deps build release run serve stop unit test format lint docs html check clean

deps:
	@$(INSTALL) $(BUILD_PACKAGES)

build: deps
	$(SWIFT) build

release: deps
	$(SWIFT) build -c release --product larderd
	$(SWIFT) build -c release --product larderctl
	$(SWIFT) build -c release --product larderweb

run:
	@echo "Larder's tour: four minutes on two cores the first time, three of them to compile; a minute from then on."
	@$(INSTALL) $(BUILD_PACKAGES) $(TOUR_PACKAGES)
	@Examples/tour.sh

# The default paths of larderd and larderctl, so that larderctl finds the daemon without options.
serve: release
	@.build/release/larderctl ping >/dev/null 2>&1 && echo "a daemon is running already" || { \
	  nohup .build/release/larderd >>.build/larderd.log 2>&1 & \
	  for i in $$(seq 50); do .build/release/larderctl ping >/dev/null 2>&1 && break; sleep 0.1; done; \
	  .build/release/larderctl ping >/dev/null && echo "larderd is running; its log: .build/larderd.log"; }
	@echo "try:   .build/release/larderctl set greeting hello && .build/release/larderctl get greeting"
	@echo "stop:  make stop"

stop:
	-.build/release/larderctl SHUTDOWN

# Install Debian packages before anything else, because only one installation can run at a time.
.PHONY: test-packages test-build test-deps
test-packages:
	@$(INSTALL) $(BUILD_PACKAGES) $(TEST_PACKAGES)

test-build: deps
	$(SWIFT) build --build-tests

test-deps: test-packages proof-packages proof-python

# The tests that need only the packages of the build.
UNIT = ^Larder(LevelDB|Engine|JSONCoding|RESP|Backup)?Tests[.]
unit: test-build
	@Tests/run-tests.sh unit --filter '$(UNIT)' --skip '$(PROOFS)'

test: test-packages
	@$(MAKE) --no-print-directory test-build
	@Tests/run-tests.sh test --skip '$(PROOFS)'

format:
	$(SWIFT) format --recursive --in-place --parallel Package.swift Sources Tests Examples
	$(MAKE) --no-print-directory lint

lint:
	$(SWIFT) format lint --recursive --strict --parallel Package.swift Sources Tests Examples

check: lint
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory proofs
	@$(MAKE) --no-print-directory asan
	@$(MAKE) --no-print-directory tsan

docs: export LARDER_BENCH = 1
docs: test-packages test-build
	LARDER_UPDATE_DOCS=1 $(SWIFT) test --skip-build --disable-xctest --filter "DocsTests|ArchitectureTests"

html: deps
	@$(INSTALL) python3-markdown
	/usr/bin/python3 docs/site.py .build/html
	$(SWIFT) build --product larderctl
	$(SWIFT) build --target Larder
	docs/html.sh .build/debug .build/html
	@echo "to read it: .build/html/index.html; the API: python3 -m http.server -d .build/html,"
	@echo "then http://localhost:8000/Larder/documentation/larder/"

clean:
	rm -rf .build

include Tests/proofs.mk Tests/Benchmarks/bench.mk Tests/Fuzz/fuzz.mk Sources/packaging/packaging.mk
