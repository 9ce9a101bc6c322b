#!/bin/bash
# Makes an OCI archive of larderd and larderctl, with no other files than those that they need. Uses no registry.
# Called by `make image`: make-image.sh DISTRIBUTION OUTPUT, where DISTRIBUTION is the unpacked tarball of `make dist`.
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
distribution=$1 output=$2
work=$(mktemp -d /var/tmp/larder-image.XXXXXX)
# Works in a container too: copies files instead of mounting overlays, and starts no process.
builder=(buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs)
trap 'rm -rf "$work"' EXIT

# Also the user of a pod that requires runAsNonRoot, which accepts only numbers.
user=10001
root=$work/root
install -d -m 755 "$root" "$root/etc" "$root/run" "$root/var/cache"
install -d -m 1777 "$root/tmp"
install -d -m 700 -o $user -g $user "$root/var/cache/larder"
install -d -m 755 -o $user -g $user "$root/run/larder"
# Without a home: larderctl's shell would write its history into the larder's volume.
echo "larder:x:$user:$user:Larder:/nonexistent:/usr/sbin/nologin" >"$root/etc/passwd"
echo "larder:x:$user:" >"$root/etc/group"
install -D -t "$root/usr/bin" "$distribution"/usr/local/bin/{larderd,larderctl}
"$here/copy-libraries.sh" "$root" "$root"/usr/bin/*
# The terminals that larderctl's shell may run in.
for terminal in d/dumb l/linux s/screen s/screen-256color t/tmux t/tmux-256color v/vt100 x/xterm x/xterm-256color; do
    install -m 644 -D -t "$root/lib/terminfo/${terminal%/*}" "/lib/terminfo/$terminal"
done
# The certificates of public authorities, for origins with TLS.
install -m 644 -D /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
mkdir -p "$root/usr/share/doc/larder"
cp -r "$distribution/usr/local/share/doc/larder"/{LICENSE,licences} "$root/usr/share/doc/larder/"
install -m 644 /usr/share/doc/libc6/copyright "$root/usr/share/doc/larder/licences/libc6"

version=$("$root/usr/bin/larderd" --version)
version=${version#larderd }
container=$("${builder[@]}" from scratch)
# As a tarball, which keeps the owners of the directories.
tar -C "$root" --sort=name -cf "$work/root.tar" .
"${builder[@]}" add --quiet "$container" "$work/root.tar" / >/dev/null
"${builder[@]}" config --user $user:$user --workingdir / --entrypoint '["/usr/bin/larderd"]' \
    --cmd '--dir=/var/cache/larder --socket-mode=660' \
    --env PATH=/usr/bin --env LARDER_SOCKET=/run/larder/larder.sock --env SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    --volume /var/cache/larder --volume /run/larder --stop-signal SIGTERM \
    --label org.opencontainers.image.title=larder --label org.opencontainers.image.version="$version" \
    --label org.opencontainers.image.licenses=Apache-2.0 "$container"
mkdir -p "$(dirname "$output")"
rm -f "$output"
"${builder[@]}" commit --quiet --disable-compression=false "$container" "oci-archive:$output:larder:latest"
ls -l "$output"
