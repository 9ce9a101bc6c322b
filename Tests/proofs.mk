# Tests that take long or need other programs. `make test` skips them, `make proofs` runs all of them, and for example `make proof-power`
# runs one group. Each name below is a suite, or suite/function. Included by the Makefile.
#
#   make proofs       all groups once, and make dist and make image with the programs that the tests use
#   make tsan asan    the tests under the thread and the address sanitizer
#   make leaks        the tests of the modules that need no daemon, each under the leak checker
#   make kill         ROUNDS rounds of kill -9 under load, and the model test with ROUNDS seeds
#   make crash power  SIGKILL and failing calls, or power cuts, at ROUNDS points of recorded daemons
#   make disk         a long random history with a disk limit, and kill -9 during eviction; ROUNDS rounds
#   make queries      a million random queries, and live queries, compared with an oracle under overwrites, expiry, purges, evictions,
#                     kills, clock steps, full disks and interrupted builds of indexes (QUERIES: how many)
#   make leaderboard  queries of the first ten of 100,000 scores while the scores change, for an hour (SECONDS: how long)
#   make fleet        two larders in front of a Redis Cluster whose nodes and links fail; ROUNDS rounds of each kind
#   make valkey       the tests of origins with a valkey-server 9 (see Tests/valkey.sh) instead of redis-server, and make fleet
#                     with a Valkey cluster
#   make hostile      hostile clients at full size: ten thousand connections, values of 512 MiB, a million words
#   make planted      mutation tests: inserts one defect after the other into a copy of the package, and reports which of them the
#                     tests find (PLANTED: the numbers of defects, to insert only these)
#   make steady       runs the tests of make test STEADY times on an idle machine and STEADY times on a busy one

PROOF_GROUPS = power kill fleet origins disk histories large clients browsers prometheus examples
PROOF_power = AccidentTests RecorderTests/aCompleteTraceRebuildsTheFilesOfTheDaemon
PROOF_kill = KillTests ReplicateKillTests OutboxDaemonTests OutboxClusterTests
PROOF_fleet = FleetTests CacheFleetTests NetworkLinkTests
PROOF_origins = ClusterTests RedisClusterTests OriginBadInputTests OriginCycleTests
PROOF_disk = DiskHistoryTests DaemonDiskBudgetTests FullFileSystemTests SalvageFaultTests ShortReadTests
PROOF_histories = ConcurrentFollowerTests ModelTests SalvageDamageTests ChangeRaceTests LeaderboardTests
PROOF_large = ModelMemoryTests HostileRequestTests/hugeValuesFromTinyRequests HostileRequestTests/aMillionArguments HostileRequestTests/aPipelineOfAMillion
PROOF_clients = FrameworkTests OtherClientTests RedisPyTests RedisCLITests FetchStormTests LockContentionTests
PROOF_browsers = WebBrowserTests
PROOF_prometheus = WebMetricsTests/promtoolFindsNoErrors WebMetricsTests/prometheusScrapesTheMetrics
PROOF_examples = ExampleTests IntegrationTests DocsArticleTests/theCatalogueIsComplete

# Joins the tests of groups to a regular expression.
space := $(subst ,, )
proofs_of = [.]($(subst $(space),|,$(strip $(foreach group,$(1),$(PROOF_$(group))))))\b
PROOFS = $(call proofs_of,$(PROOF_GROUPS))

.PHONY: proof-packages proof-python proofs $(PROOF_GROUPS:%=proof-%) tsan asan leaks kill crash power disk queries leaderboard fleet valkey hostile steady \
  planted
proof-packages:
	@$(INSTALL) $(BUILD_PACKAGES) $(TEST_PACKAGES) $(PROOF_PACKAGES)

proof-python: proof-packages
	@$(MAKE) --no-print-directory $(VENV)/bin/python
	@$(VENV)/bin/python -c 'import sys; from importlib.util import find_spec; sys.exit(not all(map(find_spec, sys.argv[1:])))' \
	  $(PYTHON_MODULES) 2>/dev/null || \
	  $(VENV)/bin/python -m pip install -q --disable-pip-version-check $(PYTHON_PACKAGES)

# Python's packages are downloaded while the compiler runs.
proofs $(PROOF_GROUPS:%=proof-%): proof-packages
	@$(MAKE) --no-print-directory -j2 proof-python test-build
	@Tests/run-tests.sh $@ --filter '$(call proofs_of,$(if $(filter proofs,$@),$(PROOF_GROUPS),$(@:proof-%=%)))'
	@$(if $(filter proofs,$@),$(MAKE) --no-print-directory image PRODUCTS=.build/debug)
	@$(if $(filter proofs,$@),$(MAKE) --no-print-directory proof-bench)

STEADY ?= 3
steady: test-packages test-build
	@Tests/steady.sh $(STEADY) --skip '$(PROOFS)'

VENV = .build/venv
$(VENV)/bin/python:
	python3 -m venv $(VENV)

# Python clients and frameworks that the tests use.
PYTHON_PACKAGES = redis django flask-caching dogpile.cache celery django-redis aiocache pottery limits flask-limiter slowapi \
  cashews litestar fastapi fastapi-cache2 httpx
PYTHON_MODULES = redis django flask_caching dogpile.cache celery django_redis aiocache pottery limits flask_limiter slowapi \
  cashews litestar fastapi fastapi_cache httpx

# Threads that run until the process exits are never joined; do not report them as leaks.
# Its detector of deadlocks fails when a thread holds more than 64 locks, as the replay of two databases does.
tsan: test-deps
	LARDER_SYSTEM_MALLOC=1 LARDER_SANITIZED=1 TSAN_OPTIONS="detect_deadlocks=0 report_thread_leaks=0 suppressions=$(CURDIR)/Tests/tsan.suppressions" $(SWIFT) test --no-parallel --disable-xctest --sanitize=thread --scratch-path .build/tsan

# The tests do not run in parallel: slowed down by the sanitizer, they would exceed their time limits.
# They do not search for leaks; make leaks does that.
asan: test-deps
	LARDER_SYSTEM_MALLOC=1 LARDER_SANITIZED=1 ASAN_OPTIONS=detect_leaks=0 $(SWIFT) test --no-parallel --disable-xctest --sanitize=address --scratch-path .build/asan

# The leak checker is preloaded, because the compiler's address sanitizer takes an hour for these tests. Each suite runs in its own
# process, because the checker crashes after some thousand threads. A leak is reported only if it is found twice, because a thread may
# be closing a larder when the process exits. Skipped are tests that measure memory, and one that leaves the checker no descriptors.
LEAK_MODULES = Engine|LevelDB|JSONCoding|RESP|Backup
leaks: test-build
	@$(INSTALL) liblsan0
	@tests() { SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=2 .build/debug/LarderPackageTests.xctest --testing-library swift-testing "$$@"; }; \
	check() { LD_PRELOAD="$$(ls /usr/lib/*/liblsan.so.0)" LSAN_OPTIONS=exitcode=23:suppressions=$(CURDIR)/Tests/leaks.suppressions tests \
	  --filter "^$${1/./[.]}/" --skip '$(PROOFS)|FullFileSystem|LargeValue|[mM]emory|systemErrorsAreThrownAndNotTakenForDamage' >.build/leaks.log 2>&1 || \
	  grep -q "run with 0 tests" .build/leaks.log; }; \
	for suite in $$(tests --list-tests | sed -nE 's#^(Larder($(LEAK_MODULES))?Tests[.][^/]+)/.*#\1#p' | sort -u); do \
	  echo "$$suite"; check "$$suite" || check "$$suite" || { tail -60 .build/leaks.log; exit 1; }; done

kill: test-deps test-build
	LARDER_KILL_ROUNDS=$(ROUNDS) LARDER_ROUNDS=$(ROUNDS) $(SWIFT) test --skip-build --disable-xctest --filter 'Kill|Model'

# A failure is printed with the variables that repeat it: LARDER_SEED=… LARDER_POINT=… make crash.
crash power: deps
	@$(INSTALL) gcc libc6-dev
	$(SWIFT) build -c release --product larderaccidents
	.build/release/larderaccidents $@ $(ROUNDS)

disk: test-deps test-build
	LARDER_DISK_ROUNDS=$(ROUNDS) LARDER_KILL_ROUNDS=$(ROUNDS) $(SWIFT) test --skip-build --disable-xctest \
	  --filter 'DiskHistoryTests|DaemonDiskBudgetTests'

QUERIES ?= 1000000
queries: test-deps test-build
	LARDER_ROUNDS=$$(( $(QUERIES) / 1000 )) $(SWIFT) test --skip-build --disable-xctest --filter QueryHistoryTests

SECONDS ?= 3600
leaderboard: test-deps test-build
	LARDER_ROUNDS=$(SECONDS) $(SWIFT) test --skip-build --disable-xctest --filter LeaderboardTests

fleet: test-deps test-build
	LARDER_FLEET_ROUNDS=$(ROUNDS) $(SWIFT) test --skip-build --disable-xctest --filter 'FleetTests|NetworkLinkTests'

valkey: test-deps test-build
	program="$$(Tests/valkey.sh $(VENV))" && LARDER_ORIGIN_SERVER="$$program" LARDER_FLEET_ROUNDS=$(ROUNDS) \
	  $(SWIFT) test --skip-build --disable-xctest --filter 'Origins|Origin|Outbox|RedisCluster|LarderctlRedis|FleetTests|NetworkLink'

hostile: test-deps test-build
	ulimit -n "$$(ulimit -Hn)"; LARDER_HOSTILE=1 $(SWIFT) test --skip-build --disable-xctest --filter Hostile

# Works in a copy, so that no defect is ever written to Sources.
planted: test-packages
	python3 Tests/Planted/planted.py $(PLANTED)
