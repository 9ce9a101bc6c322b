#!/bin/bash
# Links a program that SwiftPM has compiled with the archives of Debian's packages, not with their shared libraries.
# Called by `make dist`: link-static.sh PRODUCTS PROGRAM OUTPUT, where PRODUCTS is SwiftPM's directory, such as .build/release.
set -euo pipefail

products=$1 program=$2 output=$3
swiftc=$(dirname "$(readlink -f "$(command -v "${SWIFT:-swift}")")")/swiftc

# In a directory that contains only archives, the linker finds no shared library. The names are those that the objects ask for.
archives=$(mktemp -d)
trap 'rm -rf "$archives"' EXIT
archive() {
    local path
    path=$(cc -print-file-name="$1")
    [ -e "$path" ] || { echo "there is no archive $1" >&2; exit 1; }
    ln -s "$path" "$archives/$2"
}
for name in leveldb snappy xxhash lua5.1 lua5.1-cjson lua5.1-bitop md ssl crypto edit tinfo bsd stdc++; do
    archive "lib$name.a" "lib$name.a"
done
archive libuv_a.a libuv.a
# The part of GCC's library that unwinds the stack for exceptions.
archive libgcc_eh.a libgcc_s.a

# larderweb loads libmicrohttpd: its archive needs GnuTLS, and p11-kit, which GnuTLS loads, exists only as a shared library.
options=()
case $program in
larderd)
    # Swift's -static-stdlib hides the symbols of archives. So link jemalloc as an object, and export its functions: otherwise
    # the C library would allocate from its own heap, for example in realpath, what the daemon frees.
    ld -r --whole-archive "$(cc -print-file-name=libjemalloc_pic.a)" -o "$archives/jemalloc.o"
    for name in malloc calloc realloc free memalign aligned_alloc posix_memalign valloc pvalloc malloc_usable_size; do
        options+=(-Xlinker "--export-dynamic-symbol=$name")
    done
    libraries=("$archives/jemalloc.o" -llua5.1-cjson -llua5.1-bitop -llua5.1 -lxxhash -luv -lssl -lcrypto -lmd -lleveldb -lsnappy -lstdc++)
    ;;
larderctl) libraries=(-lssl -lcrypto -ledit -ltinfo -lbsd -lmd) ;;
larderweb) libraries=(-lmicrohttpd -lleveldb -lsnappy -lstdc++) ;;
esac
# Foundation's parts are named, because only modules that were compiled with -static-stdlib name them.
"$swiftc" -static-stdlib -use-ld=lld -L "$archives" "@$products/$program.product/Objects.LinkFileList" "${libraries[@]}" -lm \
    -l_FoundationCollections -l_FoundationCShims \
    -Xlinker --defsym -Xlinker "main=${program}_main" -Xlinker --gc-sections "${options[@]}" -o "$output"
