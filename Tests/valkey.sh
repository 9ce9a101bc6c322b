#!/bin/bash
# Prints the path of a valkey-server: the installed one, or else Debian's package (from backports if the release has none), which is
# unpacked below the given directory without installing it.
set -euo pipefail

if command -v valkey-server; then exit; fi
place=$(mkdir -p "$1" && cd "$1" && pwd)
program=$place/root/usr/bin/valkey-server
if [ ! -x "$program" ]; then
    . /etc/os-release
    mkdir -p "$place"/lists/partial "$place"/cache/archives/partial
    for suite in "$VERSION_CODENAME" "$VERSION_CODENAME-backports"; do
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main"
    done >"$place/sources.list"
    # Use separate package lists, so that apt's lists of this machine do not change.
    own=(-qq -o "Dir::Etc::SourceList=$place/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State::Lists=$place/lists" -o "Dir::Cache=$place/cache" -o APT::Sandbox::User=root)
    apt-get "${own[@]}" update >&2
    (cd "$place" && apt-get "${own[@]}" download valkey-server valkey-tools >&2)
    for package in "$place"/valkey-*.deb; do dpkg-deb -x "$package" "$place/root"; done
fi
"$program" --version >&2
echo "$program"
