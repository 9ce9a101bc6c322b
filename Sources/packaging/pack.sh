#!/bin/bash
# Packs the programs with their units and manual pages into a tarball. larderd and larderctl need only the C library.
# Called by `make dist`: pack.sh PRODUCTS DIRECTORY [PACKAGE…], where the licences of the packages are added.
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
products=$1 directory=$2
shift 2
version=$("$products/larderd" --version)
name=larder-${version#larderd }-$(uname -m)
root=$directory/$name
rm -rf "$directory"
mkdir -p "$root/usr/local/bin"

linkers=()
for program in larderd larderctl larderweb; do
    "$here/link-static.sh" "$products" "$program" "$root/usr/local/bin/$program" &
    linkers+=($!)
done
make -s install-files DESTDIR="$(readlink -f "$root")" PREFIX=/usr/local
# A configuration file is optional. In the tarball, it would replace an edited one.
mv "$root/etc/larder/larderd.conf" "$root/usr/local/share/doc/larder/"
rm -r "$root/etc"
for package in "$@"; do
    install -m 644 -D "/usr/share/doc/$package/copyright" "$root/usr/local/share/doc/larder/licences/$package"
done
# The GCC Runtime Library Exception, for the parts of the C++ library in the programs.
install -m 644 "$(ls /usr/share/doc/gcc-*-base/copyright | tail -1)" "$root/usr/local/share/doc/larder/licences/gcc"
install -m 644 "$here/../../LICENSE" "$root/usr/local/share/doc/larder/LICENSE"
for linker in "${linkers[@]}"; do wait "$linker"; done
strip "$root"/usr/local/bin/*

# Without directories: tar would change the owners and modes of those that exist.
(cd "$directory" && find "$name" ! -type d | LC_ALL=C sort) \
    | tar -C "$directory" --owner=0 --group=0 --no-recursion -czf "$directory/$name.tar.gz" -T -
ls -l "$root/usr/local/bin" "$directory/$name.tar.gz"
