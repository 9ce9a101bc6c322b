#!/bin/bash
# Copies the shared libraries that programs load, and the dynamic loader, to the same paths below another root.
# copy-libraries.sh ROOT PROGRAM…
set -euo pipefail

root=$1
shift
for path in $(ldd "$@" | grep -o '/[^ :]*\.so[^ :]*' | sort -u); do
    install -D "$(readlink -f "$path")" "$root$path"
done
