# Uses the larder in a Swift program, without a daemon. Sourced by tour.sh.

load_records() {
    step 'A Swift program reads them into Codable models and stores them, with a policy'
    local command="package-catalog load --directory larder --policy low --installed $status"
    [ "$available_count" = 0 ] || command+=" --available available.txt"
    [ "$translations" = 0 ] || command+=" --translations descriptions.txt"
    must "$command"
    same "$(loaded installed records)" "$installed_count"
    installed_entries=$(loaded installed entries)
    if [ "$available_count" != 0 ]; then
        same "$(loaded available records)" "$available_count"
        available_entries=$(loaded available entries)
        # A version that is in several archives becomes one entry.
        [ "$(loaded available 'skipped')" != 0 ] || same "$available_entries" "$(distinct_available)"
    fi
    claim "every record was counted; entries are fresh for 24 hours (policy low), and are never returned after that"
}

# Finds a number in the report of `load` about a database: of records read, of records skipped, or of entries.
loaded() {
    printf '%s\n' "$output" | tr -d , | sed -n "/^$1:/,/^[a-z]*:/p" | awk -v what="$2" '
        match($0, "[0-9]+ " what) { number = substr($0, RSTART); sub(/ .*/, "", number); found = number; exit }
        END { print found + 0 }'
}

distinct_available() {
    awk '/^Package: /{p=$2} /^Version: /{v=$2} /^Architecture: /{a=$2} /^$/{print p ":" a "=" v}' available.txt |
        LC_ALL=C sort -u | wc -l
}

show_embedded() {
    step 'The same program reads typed models from the larder'
    architecture=$(dpkg --print-architecture)
    bash_version=$(dpkg-query -W -f='${Version}' bash)
    must 'package-catalog show --directory larder bash'
    expect "version $bash_version"
    expect '(policy low)'
    claim "dpkg reports the same version of bash: $bash_version"
    if [ "$available_count" != 0 ]; then
        local package=vim
        grep -qx 'Package: vim' available.txt || package=$(sed -n 's/^Package: //p;/^Package: /q' available.txt)
        lines_max=16
        must "package-catalog show --directory larder --database available --language ja $package"
    fi
    lines_max=12
    must "package-catalog snapshot --directory larder bash"
    expect "the snapshot says: $bash_version,"
    claim 'a snapshot does not contain writes made after it was taken'
}

find_models() {
    step 'Queries find models by their properties, through indexes'
    say 'When it stored the records, the program declared indexes on three properties. It finds the packages that depend on'
    say 'libc6, and counts them twice: through the index, and by decoding all models.'
    must 'package-catalog needs --directory larder --limit 4 libc6'
    expect 'packages need libc6'
    if grep -q '^Description:.* shell' available.txt 2>/dev/null; then
        must 'package-catalog needs --directory larder --database available --limit 3 libc6'
        must 'package-catalog search --directory larder --database available --limit 4 shell'
        case ${output//,/} in
        *" of $available_entries packages say "*) ;;
        *) fail "there are not $available_entries entries" ;;
        esac
    fi
    claim 'the index finds the same packages as decoding all models one after the other'
    say 'A live query follows the first of them while the list changes:'
    must 'package-catalog follow --directory larder --limit 3 libc6'
    expect '(moved)'
    expect '- 0-new (removed)'
    claim 'a live query reports what has changed, and why a row has left'
}

find_models_from_other_processes() {
    step 'Other processes query the same models'
    must 'larderctl --socket larder.sock --database installed index'
    expect 'needs'
    must "larderctl --socket larder.sock --database installed query select 3 name version installedBytes where section = shells sort installedBytes desc limit 3"
    expect 'bash'
    must "printf 'SELECT installed\nQUERY COUNT WHERE needs = libc6\n' | redis-cli -s larder.sock"
    local before=${output##*$'\n'}
    say 'An entry that is stored now is found at once:'
    must "larderctl --socket larder.sock --database installed set demo '{\"needs\": [\"libc6\"]}'"
    must 'larderctl --socket larder.sock --database installed query count where needs = libc6'
    same "$output" $((before + 1))
    must 'larderctl --socket larder.sock --database installed del demo'
    must 'larderctl --socket larder.sock --database installed query count where needs = libc6'
    same "$output" "$before"
    claim 'queries see each write at once, from any process'
}

kill_batches() {
    step 'Batches of 500 entries, killed in the middle: all or nothing'
    local round acknowledged found
    for round in 1 2 3; do
        package-catalog batches --directory larder >"batches-$round.txt" 2>&1 &
        local writer=$!
        wait_until "[ \$(wc -l <batches-$round.txt) -ge $((round * 7)) ] || ! kill -0 $writer"
        # Wait for a random time, to kill the program within a batch.
        sleep "0.0$((RANDOM % 90 + 10))"
        end_process KILL "$writer"
        [ "$code" = 137 ] || fail "the program ended by itself: $(tail -n 1 "batches-$round.txt")"
        acknowledged=$(tail -n 1 "batches-$round.txt")
        found=$(package-catalog batches --directory larder --check) || fail "$found"
        say "killed (SIGKILL) after batch $acknowledged was acknowledged: all 500 entries are of batch $found"
        [ "$found" -ge "$acknowledged" ] && [ "$found" -le $((acknowledged + 1)) ] || fail 'a batch is missing'
    done
    claim 'no batch was stored only in part, and no acknowledged batch is missing'
}
