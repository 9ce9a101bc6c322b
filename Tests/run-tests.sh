#!/bin/bash
# Runs tests that are built: run-tests.sh NAME [option of swift test …]. Afterwards .build/NAME.log has what they printed, failures first.
set -uo pipefail
log=.build/$1.log
shift

# All tests at once would keep those that wait for something waiting for all others.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=8
"${SWIFT:-swift}" test --skip-build --disable-xctest "$@" 2>&1 | tee "$log.part"
code=$?
# swift test takes a filter that matches nothing for success.
if ! grep -aqE 'Test run with [1-9][0-9]* test' "$log.part"; then
    echo "Fatal error: no test has run" >>"$log.part"
    [ "$code" != 0 ] || code=1
fi
failures=$(grep -aE -A4 'recorded an issue|Fatal error|unexpected signal' "$log.part" | cut -c1-400)
{ [ "$code" = 0 ] || printf 'What failed:\n%s\n\n' "$failures"; cat "$log.part"; } >"$log"
rm "$log.part"
[ "$code" = 0 ] || printf '\nWhat failed (all of it: %s):\n%s\n' "$log" "$failures"
exit "$code"
