# The benchmark and its tests. It belongs to the package only while LARDER_BENCH is set. Included by the Makefile.

BENCH_PACKAGES = redis-server redis-tools memcached libsqlite3-0 python3-venv

bench-deps bench bench-quick bench-page proof-bench: export LARDER_BENCH = 1

.PHONY: bench-deps bench bench-quick bench-page proof-bench
bench-deps: deps
	@$(INSTALL) $(BENCH_PACKAGES)
	@$(MAKE) --no-print-directory $(VENV)/bin/python
	@$(VENV)/bin/python -c 'import diskcache' 2>/dev/null || $(VENV)/bin/python -m pip install -q diskcache || \
	  echo "diskcache cannot be installed: its rows will be missing"
	@Tests/valkey.sh $(VENV) >/dev/null || echo "Valkey cannot be installed: its rows will be missing"
	$(SWIFT) build -c release --product larderd
	$(SWIFT) build -c release --product larderbench

BENCH = .build/release/larderbench --json .build/bench.json $(if $(SUITES),--only $(SUITES))

bench: bench-deps
	$(BENCH)

bench-quick: bench-deps
	$(BENCH) --quick

bench-page: bench-deps
	$(BENCH) --page docs/Benchmarks.md

proof-bench: test-packages
	@$(MAKE) --no-print-directory test-build
	@Tests/run-tests.sh $@ --filter '^LarderBenchTests[.]'
