#!/bin/bash
# Tests the tarball or the image in a root that contains nothing else: as a user without privileges, with clients of another
# user who reach the socket through a shared directory. Restarts and kills the daemon.
# Called by `make dist` and `make image`: test-root.sh ARCHIVE. Needs root, for chroot.
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
archive=$1
work=$(mktemp -d /var/tmp/larder-root.XXXXXX)
root=$work/root shared=$work/shared
daemon=""
trap 'kill -9 $daemon 2>/dev/null || true; umount "$root/run/larder" "$root/proc" 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT

fail() { echo "FAILED: $*" >&2; [ ! -e "$work/log" ] || tail "$work/log" >&2; exit 1; }
expect() { local found; found=$("${@:2}" 2>&1) || fail "${*:2}: $found"; [ "$found" = "$1" ] || fail "${*:2}: '$found', not '$1'"; }

# Sets `user`, `command` and `environment`, and fills the root.
unpack_tarball() {
    # Directories of the machine stay as they are: as in Debian, one belongs to a group, and one is a symbolic link.
    install -d -m 2775 -g 50 "$root/usr/local/bin"
    install -d "$root/usr/local/man" "$root/usr/local/share"
    ln -s ../man "$root/usr/local/share/man"
    tar -xzf "$archive" --strip-components=1 -C "$root"
    expect "2775 50" stat -c "%a %g" "$root/usr/local/bin"
    expect ../man readlink "$root/usr/local/share/man"
    local file
    for file in doc/larder/LICENSE doc/larder/licences/gcc zsh/site-functions/_larderctl; do
        [ -s "$root/usr/local/share/$file" ] || fail "the tarball lacks $file"
    done
    local programs=("$root"/usr/local/bin/{larderd,larderctl})
    local others
    others=$(ldd "${programs[@]}" | awk '$2 == "=>" { print $1 }' | grep -vE '^lib[cm]\.so\.' || true)
    [ -z "$others" ] || fail "the programs load more than the C library: $others"
    "$here/copy-libraries.sh" "$root" "${programs[@]}"
    user=10001
    install -d -m 755 -o $user "$root/run/larder" "$root/var/cache/larder"
    environment=(PATH=/usr/local/bin LARDER_SOCKET=/run/larder/larder.sock)
    command=(larderd --dir=/var/cache/larder --socket-mode=660)
}
unpack_image() {
    [ "$(stat -c %s "$archive")" -le 40000000 ] || fail "the image takes $(stat -c %s "$archive") bytes"
    mkdir "$work/image"
    tar -xf "$archive" -C "$work/image"
    blob() { echo "$work/image/blobs/sha256/${1#sha256:}"; }
    local manifest config layer
    manifest=$(blob "$(jq -r '.manifests[0].digest' "$work/image/index.json")")
    for layer in $(jq -r '.layers[].digest' "$manifest"); do tar -xzf "$(blob "$layer")" -C "$root"; done
    [ -s "$root/usr/share/doc/larder/LICENSE" ] || fail "the image lacks LICENSE"
    config=$(blob "$(jq -r .config.digest "$manifest")")
    user=$(jq -r .config.User "$config" | cut -d: -f1)
    readarray -t environment < <(jq -r '.config.Env[]' "$config")
    readarray -t command < <(jq -r '(.config.Entrypoint + .config.Cmd)[]' "$config")
    # The shell's history must not be written into the larder's volume.
    grep -q "^larder:x:$user:$user:Larder:/nonexistent:" "$root/etc/passwd" || fail "user $user has no name, or a home"
    expect Apache-2.0 jq -r '.config.Labels["org.opencontainers.image.licenses"]' "$config"
    expect $'/run/larder\n/var/cache/larder' jq -r '.config.Volumes | keys[]' "$config"
    grep -q "BEGIN CERTIFICATE" "$root$(printf '%s\n' "${environment[@]}" | sed -n s/^SSL_CERT_FILE=//p)" || fail "no certificates"
}

enter() { exec env -i "${environment[@]}" "$(command -v chroot)" --userspec="$user:$user" --groups= "$root" "$@"; }
within() { (enter "$@"); }
# A client of another user, in the socket's group, outside of the root.
ask() { setpriv --reuid=20002 --regid="$user" --clear-groups redis-cli -s "$shared/larder.sock" "$@"; }
start() {
    enter "${command[@]}" >>"$work/log" 2>&1 &
    daemon=$!
    for _ in $(seq 100); do [ "$(ask PING 2>&1)" = PONG ] && return; sleep 0.1; done
    fail "the daemon did not start"
}
stop() { kill "-$1" "$daemon"; wait "$daemon" 2>/dev/null || true; daemon=""; }

chmod 755 "$work"
mkdir "$root"
case $archive in
*.tar.gz) unpack_tarball ;;
*) unpack_image ;;
esac
size=$(du -sm "$root" | cut -f1)
install -d -m 2770 -g "$user" "$shared"
mount --bind "$shared" "$root/run/larder"
if said=$(within larderd --version 2>&1); then fail "larderd runs without /proc, with other options: $said"; fi
[[ $said == *"/proc is not mounted"* ]] || fail "larderd without /proc: $said"
mkdir -p "$root/proc"
mount -t proc proc "$root/proc"

within larderd --version
start
expect OK ask SET greeting hello PX 3600000
expect "" ask EVAL "for i = 1, 2000 do redis.call('set', 'key' .. i, string.rep('x', 1000)) end" 0
expect '{"sum":2}' ask EVAL 'return cjson.encode({sum = bit.band(3, 2)})' 0
expect hello within larderctl get greeting
stop TERM
within larderctl check /var/cache/larder || fail "larderctl check"
start
expect hello ask GET greeting
expect OK ask SET greeting "good morning"
stop KILL
start
expect "good morning" ask GET greeting
expect 2001 ask DBSIZE
stop TERM
echo "all is well: $archive, $(stat -c %s "$archive") bytes, unpacked $size MB"
