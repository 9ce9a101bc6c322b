#!/bin/bash
# Tests the service in a new system with systemd as its first process: installs the package, runs an application that writes
# far more than the budget while the daemon is restarted and killed, scrapes metrics, opens the pages, uses an origin over TCP,
# verifies and restores a backup, upgrades and removes the package.
# Called by `make service-test` with the directory of the package. FILL_SECONDS: the time for which the application writes (30).
# Needs root, and a machine whose first process is not systemd, such as a container, because cgroups have one owner.
set -Eeuo pipefail

here=$(dirname "$(readlink -f "$0")")
package=$(readlink -f "$1"/larder_*.deb)
# The new system does not have this directory.
unset TMPDIR
budget=64
# The maximum size of all files: the budget, one checkpoint and one merge of tables (docs/Architecture.md).
most=$((budget + 96))

if [ -d /run/systemd/system ]; then
    echo "this machine runs systemd: try the service in a container without it, or install the package (make deb)" >&2
    exit 2
fi

root=$(mktemp -d /var/tmp/larder-service.XXXXXX)
# systemd changes this setting when it boots, because the network namespace is this machine's.
queue=$(cat /proc/sys/net/unix/max_dgram_qlen)
keeper="" init="" sampler="" prometheus="" origin=""
trap 'kill -9 $sampler $prometheus $origin $init $keeper 2>/dev/null || true; sleep 0.5; echo "$queue" >/proc/sys/net/unix/max_dgram_qlen; rm -rf --one-file-system "$root"' EXIT

trap 'fail "line $LINENO: $BASH_COMMAND"' ERR
step() { echo "== $*"; }
fail() {
    echo "FAILED: $*" >&2
    [ -z "$init" ] || within journalctl --no-pager -n 40 -u larderd -u larderweb >&2 || true
    exit 1
}
within() { nsenter -t "$init" -m -p -u -i --root --wd=/ "$@"; }
as_larder() { within setpriv --reuid larder --regid larder --init-groups "$@"; }
expect() { local found; found=$("${@:2}") || fail "${*:2}"; [ "$found" = "$1" ] || fail "${*:2}: '$found', not '$1'"; }
fetch() { python3 -c 'import sys, urllib.request as r; sys.stdout.write(r.build_opener(r.ProxyHandler({})).open(sys.argv[1], timeout=10).read().decode())' "$1"; }
# Files that are removed during the count are not an error.
megabytes() { { du -sm "$root/var/cache/larder" 2>/dev/null || true; } | cut -f1; }
# Waits until the command succeeds, for at most the given number of seconds.
await() { local left=$1; shift; until "$@" >/dev/null 2>&1; do [ "$left" -gt 0 ] || fail "timed out waiting for: $*"; left=$((left - 1)); sleep 1; done; }

step "a new system, booted"
sources=()
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ -s "$file" ] && sources+=("$file")
done
mmdebstrap --quiet --variant=apt --skip=cleanup/apt/lists --include=systemd,systemd-sysv,dbus,util-linux \
    "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" "${sources[@]}" 2>&1 | grep -v '^I:' || true
[ -x "$root/lib/systemd/systemd" ] || fail "mmdebstrap made no system"
unshare --pid --fork --mount --ipc --uts --kill-child "$here/boot.sh" "$root" </dev/null >"$root/var/log/boot.log" 2>&1 &
keeper=$!
for _ in $(seq 50); do init=$(pgrep -P "$keeper" || true); [ -n "$init" ] && break; sleep 0.1; done
[ -n "$init" ] || { cat "$root/var/log/boot.log" >&2; fail "systemd did not start"; }
await 30 within systemctl is-active multi-user.target

step "install: the service runs"
cp "$package" "$root/var/tmp/"
within env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    "/var/tmp/$(basename "$package")" >"$root/var/log/install.log" 2>&1 || { cat "$root/var/log/install.log" >&2; fail "apt-get install"; }
await 20 within systemctl is-active larderd.service
expect PONG within larderctl ping
expect_little_exposure() {
    local exposure
    exposure=$(within systemd-analyze security larderd.service --no-pager | sed -n 's/.*exposure level for larderd.service: \([0-9.]*\).*/\1/p')
    echo "exposure: $exposure"
    python3 -c "import sys; sys.exit(float('$exposure') > 2.0)" || fail "systemd-analyze security: $exposure"
}
expect_little_exposure

step "configure: $budget MiB, by reload"
echo "max-disk = ${budget}M" >>"$root/etc/larder/larderd.conf"
within systemctl reload larderd
[[ "$(within larderctl CONFIG GET max-disk)" == *$((budget << 20))* ]] || fail "max-disk: $(within larderctl CONFIG GET max-disk)"
expect OK within larderctl --database books set isbn "a book" --policy never

step "in the browser, and for Prometheus"
within systemctl start larderweb
await 20 within systemctl is-active larderweb.service
web=http://127.0.0.1:8377/
await 20 fetch "${web}healthz"
mkdir "$root/var/prometheus"
cat >"$root/var/prometheus/prometheus.yml" <<END
global: {scrape_interval: 1s}
scrape_configs: [{job_name: larder, static_configs: [{targets: ["127.0.0.1:8377"]}]}]
END
prometheus --config.file="$root/var/prometheus/prometheus.yml" --storage.tsdb.path="$root/var/prometheus/data" \
    --web.listen-address=127.0.0.1:19090 >"$root/var/log/prometheus.log" 2>&1 &
prometheus=$!

step "an application fills it for ${FILL_SECONDS:=30} s; restarts and a kill meanwhile"
(largest=0; while sleep 0.3; do now=$(megabytes); [ "${now:-0}" -le "$largest" ] || { largest=$now; echo "$largest" >"$root/var/largest"; }; done) &
sampler=$!
python3 "$here/writers.py" "/proc/$init/root/run/larder/larder.sock" "$FILL_SECONDS" >"$root/var/log/writers.log" &
writers=$!
for signal in TERM KILL TERM; do
    sleep "$((FILL_SECONDS / 4))"
    if [ "$signal" = TERM ]; then within systemctl restart larderd; else within systemctl kill -s KILL larderd; fi
done
wait "$writers" || { cat "$root/var/log/writers.log" >&2; fail "the application"; }
cat "$root/var/log/writers.log"
kill "$sampler" || true
sampler=""
echo "the maximum size of the files: $(cat "$root/var/largest") MiB of $budget"
[ "$(cat "$root/var/largest")" -le "$most" ] || fail "more than $most MiB"
# The entry was not read since, so it may have been evicted.
expect OK within larderctl --database books set isbn "a book" --policy never
fetch "http://127.0.0.1:19090/api/v1/query?query=max_over_time(larder_evicted_entries_total%5B1h%5D)" >"$root/var/query"
python3 -c '
import json, sys
values = [float(row["value"][1]) for row in json.load(open(sys.argv[1]))["data"]["result"]]
print("evicted entries according to Prometheus:", *values)
sys.exit(not values or max(values) <= 0)' "$root/var/query" || fail "Prometheus has seen no eviction: $(cat "$root/var/query")"
chromium --headless --no-sandbox --disable-gpu --virtual-time-budget=5000 --dump-dom "$web" 2>/dev/null >"$root/var/page" || true
grep -q "books" "$root/var/page" || fail "Chromium does not show the database"

step "an origin over TCP: only with the drop-in"
redis-server --port 16379 --bind 127.0.0.1 --save "" >"$root/var/log/redis.log" 2>&1 &
origin=$!
within larderctl origin shop redis://127.0.0.1:16379 >/dev/null 2>&1 || fail "larderctl origin"
said=$(within larderctl doctor || true)
[[ "$said" == *"only Unix-domain sockets"*larderd.service.d/origins.conf* ]] || fail "larderctl doctor: $said"
within cp -r /usr/share/doc/larder/larderd.service.d /etc/systemd/system/
within systemctl daemon-reload
within systemctl restart larderd
is_up() { [[ "$(within larderctl origin shop)" == *"state: up"* ]]; }
await 20 is_up
expect OK within larderctl --database shop set apple 3
expect 3 redis-cli -p 16379 get apple
expect_little_exposure
expect OK within larderctl origin shop none
kill "$origin"
origin=""

step "a daemon that hangs is restarted"
restarts() { within systemctl show -P NRestarts larderd; }
before=$(restarts)
within systemctl kill -s STOP larderd
more() { [ "$(restarts)" -gt "$before" ]; }
await 90 more
await 20 within larderctl ping
expect "a book" within larderctl --database books get isbn

step "backup, verify, restore elsewhere"
within install -d -o larder -m 700 /var/lib/larder/backups
as_larder larderctl backup /var/tmp/lost >/dev/null 2>&1 && fail "larderctl accepts a backup in the private /tmp of the service"
as_larder larderctl backup /var/lib/larder/backups
as_larder larderctl verify /var/lib/larder/backups
as_larder larderctl restore /var/lib/larder/backups /var/tmp/restored
within larderctl check /var/tmp/restored

step "upgrade, while it serves"
within dpkg-deb -R "/var/tmp/$(basename "$package")" /var/tmp/next
sed -i 's/^Version: .*/&+next/' "$root/var/tmp/next/DEBIAN/control"
within dpkg-deb -Zgzip -b /var/tmp/next /var/tmp/next.deb >/dev/null
python3 "$here/writers.py" "/proc/$init/root/run/larder/larder.sock" 10 >"$root/var/log/writers.log" &
writers=$!
sleep 2
within env DEBIAN_FRONTEND=noninteractive dpkg -i /var/tmp/next.deb >"$root/var/log/upgrade.log" 2>&1 || fail "the upgrade"
wait "$writers" || { cat "$root/var/log/writers.log" >&2; fail "the application during the upgrade"; }
cat "$root/var/log/writers.log"
# The entry may have been evicted, but the database must exist.
within larderctl databases | grep -q books || fail "the database is gone"
[ -z "$(within systemctl --failed --no-legend)" ] || fail "$(within systemctl --failed --no-legend)"

step "purge: nothing stays but the backups"
within env DEBIAN_FRONTEND=noninteractive dpkg -P larder >"$root/var/log/purge.log" 2>&1 || fail "the purge"
for path in var/cache/larder var/cache/larderweb etc/larder/larderd.conf usr/bin/larderd; do
    [ ! -e "$root/$path" ] || fail "/$path is still there"
done
[ -d "$root/var/lib/larder/backups" ] || fail "the backups are gone"
within systemctl is-active larderd.socket >/dev/null && fail "the socket is still there"
echo "all is well"
