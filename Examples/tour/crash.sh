# Kills the daemon under load. Sourced by tour.sh.

kill_the_daemon() {
    step 'The daemon is killed (SIGKILL) while five connections write, and started again'
    local round reports=()
    must 'larderctl --socket larder.sock --database work policy low'
    for round in 1 2 3; do
        python3 "$here/tour/acknowledged.py" write larder.sock "report-$round" "$round" >"writing-$round.txt" 2>&1 &
        local writer=$!
        wait_until "grep -q writing writing-$round.txt || ! kill -0 $writer"
        sleep "0.$((RANDOM % 400 + 300))"
        end_process KILL "$daemon"
        same "$code" 137
        { wait "$writer"; } 2>/dev/null
        code=$?
        output=$(cat "writing-$round.txt")
        [ "$code" = 0 ] || fail "the writers: $output"
        say "round $round: killed. $(tail -n 1 "writing-$round.txt")"
        reports+=("report-$round")
        start_daemon
    done
    output=$(python3 "$here/tour/acknowledged.py" check larder.sock "${reports[@]}" 2>&1)
    code=$?
    show_output
    [ "$code" = 0 ] || fail 'an acknowledged write is missing, or a batch was stored only in part'
    must "printf 'SELECT installed\\nDBSIZE\\n' | redis-cli -s larder.sock"
    same "$output" "OK
$installed_entries"
    claim 'every acknowledged write is there, and no batch was stored only in part'
}
