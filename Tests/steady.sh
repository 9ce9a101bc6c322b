#!/bin/bash
# Finds flaky tests: steady.sh ROUNDS [option of swift test …] runs the tests ROUNDS times on an idle machine, and ROUNDS times while one
# process per core keeps the machine busy.
set -uo pipefail
rounds=$1
shift
trap 'kill $(jobs -p) 2>/dev/null' EXIT
failed=0
for load in idle busy; do
    if [ "$load" = busy ]; then
        for _ in $(seq "$(nproc)"); do while :; do :; done & done
    fi
    for round in $(seq "$rounds"); do
        begin=$SECONDS
        if Tests/run-tests.sh "steady-$load-$round" "$@" >/dev/null; then
            echo "$load, round $round: passed in $((SECONDS - begin)) s"
        else
            failed=$((failed + 1))
            echo "$load, round $round: failed, see .build/steady-$load-$round.log"
            sed -n '/^What failed/,/^$/p' ".build/steady-$load-$round.log"
        fi
    done
done
echo "$failed of $((2 * rounds)) rounds failed"
[ "$failed" = 0 ]
