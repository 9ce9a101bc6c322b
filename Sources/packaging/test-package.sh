#!/bin/bash
# Tests the Debian package in a new system: installs, uses, kills, backs up, upgrades, removes and purges it.
# Then runs the tests for autopkgtest (debian/tests).
# Called by `make deb-test` with the directory of the package, and the name of a Debian release if not this system's.
# Needs root, for chroot; systemd need not run.
set -euo pipefail

package=$(readlink -f "$1"/larder_*.deb)

root=$(mktemp -d /var/tmp/larder-package.XXXXXX)
daemon="" web=""
trap 'kill -9 $daemon $web 2>/dev/null || true; umount "$root/proc" 2>/dev/null || true; rm -rf --one-file-system "$root"' EXIT

step() { echo "== $*"; }
fail() { echo "FAILED: $*" >&2; exit 1; }
within() { chroot "$root" "$@"; }
as_larder() { within setpriv --reuid larder --regid larder --init-groups "$@"; }
scrape() { python3 -c 'import sys, urllib.request as r; sys.stdout.write(r.build_opener(r.ProxyHandler({})).open(sys.argv[1], timeout=10).read().decode())' "$1"; }
expect() { local found; found=$("${@:2}") || fail "${*:2}"; [ "$found" = "$1" ] || fail "${*:2}: '$found', not '$1'"; }

# Starts larderd like the unit does.
start() {
    within install -d -o larder -g larder -m 755 /run/larder
    within install -d -o larder -g larder -m 700 /var/cache/larder
    # Use exec, so that signals reach larderd itself.
    (exec chroot "$root" setpriv --reuid larder --regid larder --init-groups larderd --config=-/etc/larder/larderd.conf \
        --dir=/var/cache/larder --socket=/run/larder/larder.sock --socket-mode=660 --max-disk=64M >>"$root/var/log/larderd.log" 2>&1) &
    daemon=$!
    for _ in $(seq 100); do within larderctl ping >/dev/null 2>&1 && return; sleep 0.1; done
    cat "$root/var/log/larderd.log" >&2
    fail "the daemon did not start"
}

stop() {
    kill "-$1" "$daemon"
    wait "$daemon" 2>/dev/null || true
    daemon=""
}

step "a new system"
release=${2:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
sources=()
if [ $# -gt 1 ]; then
    sources+=("deb http://deb.debian.org/debian $release main")
else
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
        [ -s "$file" ] && sources+=("$file")
    done
fi
mmdebstrap --quiet --variant=apt --skip=cleanup/apt/lists --include=systemd-standalone-sysusers,util-linux,apt-utils \
    "$release" "$root" "${sources[@]}" 2>&1 | grep -v '^I:' || true
[ -x "$root/bin/sh" ] || fail "mmdebstrap made no system"
mount -t proc proc "$root/proc"
. "$root/etc/os-release" && echo "$PRETTY_NAME"

step "install"
cp "$package" "$root/var/tmp/"
within env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    "/var/tmp/$(basename "$package")" >"$root/var/log/install.log" 2>&1 || { cat "$root/var/log/install.log" >&2; fail "apt-get install"; }
within id larder >/dev/null || fail "there is no user larder"
for path in usr/bin/larderd usr/bin/larderctl usr/bin/larderweb etc/larder/larderd.conf lib/systemd/system/larderd.socket \
    lib/systemd/system/larderweb.service; do
    [ -e "$root/$path" ] || fail "/$path is missing"
done
within larderd --version
within larderd --config=/etc/larder/larderd.conf --check-config
if within sh -c "ls /etc/systemd/system/*.wants/larderweb.service" >/dev/null 2>&1; then fail "larderweb is enabled by default"; fi

step "use, within its budget"
start
for batch in $(seq 12); do
    head -c 8000000 /dev/urandom >"$root/tmp/value"
    expect OK within larderctl set "large $batch" --file /tmp/value
done
# Stored after the large entries, because entries that were not read may have been evicted.
expect OK within larderctl --database books set isbn "a book" --policy never
expect "a book" within larderctl --database books get isbn
within larderctl databases
used=$(du -sm "$root/var/cache/larder" | cut -f1)
[ "$used" -le 160 ] || fail "$used MB with a budget of 64"
expect larder within stat -c %U /var/cache/larder/SEQUENCES

step "in the browser, and for Prometheus"
# Starts larderweb like the unit does, but as nobody instead of a dynamic user; both are in the group larder.
within install -d -o nobody -g larder -m 700 /var/cache/larderweb
(exec chroot "$root" setpriv --reuid nobody --regid larder --clear-groups larderweb --socket=/run/larder/larder.sock \
    --history=/var/cache/larderweb/larder --listen=127.0.0.1:0 >>"$root/var/log/larderweb.log" 2>&1) &
web=$!
address=""
for _ in $(seq 100); do
    address=$(sed -n 's|.* serves \(http://[^ ]*\)$|\1|p' "$root/var/log/larderweb.log")
    [ -n "$address" ] && break
    sleep 0.1
done
[ -n "$address" ] || { cat "$root/var/log/larderweb.log" >&2; fail "larderweb did not start"; }
for text in '^larder_up 1$' '^larder_database_entries{database="books"} 1$' '^# TYPE larder_up gauge$'; do
    scrape "${address}metrics" >"$root/tmp/metrics"
    grep -q "$text" "$root/tmp/metrics" || { cat "$root/tmp/metrics" >&2; fail "/metrics has no line $text"; }
done
scrape "${address}healthz" | grep -q '"up"' || fail "/healthz"
scrape "$address" | grep -q '<title>Larder' || fail "the overview"
kill -TERM "$web"
wait "$web" || fail "larderweb ended with $?"
web=""
[ -e "$root/var/cache/larderweb/larder/LOCK" ] || fail "the last day was not kept"

step "backup, kill -9, verify, restore elsewhere"
within install -d -o larder -m 700 /var/tmp/backup
as_larder larderctl backup /var/tmp/backup
stop KILL
as_larder larderctl verify /var/tmp/backup
as_larder larderctl restore /var/tmp/backup /var/tmp/restored
start
expect "a book" within larderctl --database books get isbn

step "upgrade, with data and a changed configuration in place"
echo "memory = 32M" >>"$root/etc/larder/larderd.conf"
dpkg-deb -R "$package" "$root/var/tmp/next"
sed -i 's/^Version: .*/&+next/' "$root/var/tmp/next/DEBIAN/control"
dpkg-deb -Zgzip -b "$root/var/tmp/next" "$root/var/tmp/next.deb" >/dev/null
stop TERM
within env DEBIAN_FRONTEND=noninteractive dpkg -i /var/tmp/next.deb >/dev/null
grep -q "memory = 32M" "$root/etc/larder/larderd.conf" || fail "the configuration was lost"
start
expect "a book" within larderctl --database books get isbn
stop TERM

[ -e "$root/var/cache/larderweb/larder" ] || fail "the last day is gone"

step "remove: the data stays"
within env DEBIAN_FRONTEND=noninteractive dpkg -r larder >/dev/null
[ ! -e "$root/usr/bin/larderd" ] || fail "larderd is still there"
[ -d "$root/var/cache/larder" ] || fail "the data is gone"
[ -e "$root/etc/larder/larderd.conf" ] || fail "the configuration is gone"

step "purge: nothing stays"
within env DEBIAN_FRONTEND=noninteractive dpkg -P larder >/dev/null 2>"$root/var/log/purge.log"
[ ! -e "$root/var/cache/larder" ] || fail "the data is still there"
[ ! -e "$root/var/cache/larderweb" ] || fail "the last day is still there"
[ ! -e "$root/etc/larder/larderd.conf" ] || fail "the configuration is still there"

step "autopkgtest"
autopkgtest --no-built-binaries --quiet "$package" "$1/larder/" -- chroot "$root" >"$root/var/log/autopkgtest.log" 2>&1 \
    || { tail -20 "$root/var/log/autopkgtest.log" >&2; fail "autopkgtest"; }
grep PASS "$root/var/log/autopkgtest.log"
echo "all is well"
