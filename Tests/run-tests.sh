#!/bin/bash
# Runs tests that were built: run-tests.sh NAME [--filter REGEX] [--skip REGEX]. Writes their output to .build/NAME.log, failures first.
# Starts one process for each group of modules, which keeps the cores busy while some tests wait. A process that runs longer than
# LARDER_TEST_SECONDS (1800 by default) is ended, and the tests that have begun and not ended are named.
set -uo pipefail
log=.build/$1.log
shift
bundle=$("${SWIFT:-swift}" build --show-bin-path)/LarderPackageTests.xctest
groups=('Larder(System|ctl|web)Tests[.]' 'LarderEngineTests[.][A-I]')
limit=${LARDER_TEST_SECONDS:-1800}

# Limit the number of parallel tests: otherwise a test that waits for an event would have to wait for all other tests.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=5
run() {
    # A shell sets these signals to be ignored in its background processes; reset them.
    env --default-signal=HUP,INT,QUIT timeout --foreground --kill-after=10 "$limit" "$bundle" --testing-library swift-testing "$@"
    local code=$?
    [ $code != 124 ] || echo "Fatal error: the tests have not ended after $limit s: $*"
    [ $code = 69 ] || return $code # the options select no test of this group
}
# Prints the names of the tests that have begun and not ended.
unfinished() {
    sed -E 's/\x1b\[[0-9;]*m//g' "$log.part" | awk '
        / Test .* started\.$/ { sub(/^[^ ]* Test /, ""); sub(/ started\.$/, ""); begun[$0] = 1 }
        / Test .* (passed|failed) after / { sub(/^.*(✔|✘) Test /, ""); sub(/ (with [0-9]+ test cases? )?(passed|failed) after .*/, ""); delete begun[$0] }
        END { for (name in begun) if (name !~ /^(run|case)( |$)/) print "not ended: " name }'
}
{
    processes=()
    rest=()
    for group in "${groups[@]}"; do
        run "$@" --skip "^(?!$group)" &
        processes+=($!)
        rest+=(--skip "^$group")
    done
    run "$@" "${rest[@]}"
    code=$?
    for process in "${processes[@]}"; do wait "$process" || code=$?; done
    exit $code
} 2>&1 | tee "$log.part"
code=$?
if ! grep -aqE 'Test run with [1-9][0-9]* test' "$log.part"; then
    echo "Fatal error: no test has run" >>"$log.part"
    [ "$code" != 0 ] || code=1
fi
[ "$code" = 0 ] || unfinished >>"$log.part"
failures=$(grep -aE -A4 'recorded an issue|Fatal error|unexpected signal|^not ended' "$log.part" | cut -c1-400)
{ [ "$code" = 0 ] || printf 'What failed:\n%s\n\n' "$failures"; cat "$log.part"; } >"$log"
rm "$log.part"
[ "$code" = 0 ] || printf '\nWhat failed (all of it: %s):\n%s\n' "$log" "$failures"
exit "$code"
