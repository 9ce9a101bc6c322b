#!/bin/bash
# Runs tests that are built: run-tests.sh NAME [--filter REGEX] [--skip REGEX]. Afterwards .build/NAME.log has what they printed, failures
# first. A process for each group of modules keeps the cores busy while some tests wait.
set -uo pipefail
log=.build/$1.log
shift
bundle=$("${SWIFT:-swift}" build --show-bin-path)/LarderPackageTests.xctest
groups=('Larder(System|ctl|web)Tests[.]' 'LarderEngineTests[.][A-I]')

# All tests at once would keep those that wait for something waiting for all others.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=5
run() {
    # A shell has what it starts in the background ignore these signals.
    env --default-signal=INT,QUIT "$bundle" --testing-library swift-testing "$@"
    local code=$?
    [ $code = 69 ] || return $code # no test of the group is wanted
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
