#!/bin/bash
# Runs tests that were built: run-tests.sh NAME [--filter REGEX] [--skip REGEX]. Writes their output to .build/NAME.log, failures first.
# Starts one process for each group of modules, which keeps the cores busy while some tests wait.
set -uo pipefail
log=.build/$1.log
shift
bundle=$("${SWIFT:-swift}" build --show-bin-path)/LarderPackageTests.xctest
groups=('Larder(System|ctl|web)Tests[.]' 'LarderEngineTests[.][A-I]')

# Limit the number of parallel tests: otherwise a test that waits for an event would have to wait for all other tests.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=5
run() {
    # A shell sets these signals to be ignored in its background processes; reset them.
    env --default-signal=HUP,INT,QUIT "$bundle" --testing-library swift-testing "$@"
    local code=$?
    [ $code = 69 ] || return $code # the options select no test of this group
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
failures=$(grep -aE -A4 'recorded an issue|Fatal error|unexpected signal' "$log.part" | cut -c1-400)
{ [ "$code" = 0 ] || printf 'What failed:\n%s\n\n' "$failures"; cat "$log.part"; } >"$log"
rm "$log.part"
[ "$code" = 0 ] || printf '\nWhat failed (all of it: %s):\n%s\n' "$log" "$failures"
exit "$code"
