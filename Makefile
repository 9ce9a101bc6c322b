# Larder. `make run` shows it at work, `make test` proves it; both install what is missing.

export LARDER_STRICT = 1
SWIFT ?= swift

.PHONY: deps build test format

# What must be there to build and to run.
BUILD_PACKAGES = libleveldb-dev libsnappy-dev libuv1-dev

deps:
	@missing=""; for p in $(BUILD_PACKAGES); do \
	  dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then echo "installing$$missing"; apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; fi

build: deps
	$(SWIFT) build

test: deps
	$(SWIFT) test --disable-xctest

format:
	$(SWIFT) format --recursive --in-place --parallel Sources Tests Package.swift
	$(SWIFT) format lint --recursive --strict --parallel Sources Tests Package.swift
