# The Swift program with the larder to itself. Read by tour.sh.

load_records() {
    step 'A Swift program reads them into Codable models and stores them, with a policy'
    local command="package-catalog load --directory larder --policy low --installed $status"
    [ "$available_count" = 0 ] || command+=" --available available.txt"
    local file
    for file in ${translations[@]+"${translations[@]}"}; do command+=" --translations $file"; done
    must "$command"
    expect "installed: $(grouped "$installed_count") records"
    [ "$available_count" = 0 ] || expect "available: $(grouped "$available_count") records"
    case $output in *'passed over'*) fail 'some records were not understood' ;; esac
    claim "every record is stored; each stays fresh for 24 hours (policy low) and is then never handed out again"
}

# 63,666 for 63666
grouped() { printf '%s' "$1" | sed -e ':a' -e 's/\([0-9]\)\([0-9]\{3\}\)\($\|,\)/\1,\2\3/;ta'; }

show_embedded() {
    step 'The same program asks the larder, typed'
    architecture=$(dpkg --print-architecture)
    bash_version=$(dpkg-query -W -f='${Version}' bash)
    must 'package-catalog show --directory larder bash'
    expect "version $bash_version"
    expect '(policy low)'
    claim "dpkg itself says the same: bash is at $bash_version"
    if [ ${#translations[@]} != 0 ]; then
        must 'package-catalog show --directory larder --database available --language ja vim'
    fi
    lines_max=6
    must 'package-catalog needs --directory larder libc6'
    expect 'packages need libc6'
    if [ "$available_count" != 0 ]; then
        must 'package-catalog search --directory larder --database available --limit 4 shell'
        expect "of $(grouped "$(distinct_records)") packages say"
        claim 'a predicate over the models has looked at each of them'
    fi
    lines_max=12
    must "package-catalog snapshot --directory larder bash"
    expect "the snapshot says: $bash_version,"
    claim 'a snapshot does not see what is written after it was taken'
}

# Versions that several archives offer are one entry.
distinct_records() {
    awk '/^Package: /{p=$2} /^Version: /{v=$2} /^Architecture: /{a=$2} /^$/{print p ":" a "=" v}' available.txt |
        sort -u | wc -l
}

kill_batches() {
    step 'Batches of 500 entries, killed in the middle: all or nothing'
    local round acknowledged found
    for round in 1 2 3; do
        package-catalog batches --directory larder >rounds.txt 2>&1 &
        local writer=$!
        started+=("$writer")
        wait_until "[ \$(wc -l <rounds.txt) -ge $((round * 7)) ]"
        # Some instant within a batch.
        sleep "0.0$((RANDOM % 90 + 10))"
        end_process KILL "$writer"
        [ "$code" = 137 ] || fail "the program ended by itself: $(tail -n 1 rounds.txt)"
        acknowledged=$(tail -n 1 rounds.txt)
        found=$(package-catalog batches --directory larder --check) || fail "$found"
        say "killed (SIGKILL) after batch $acknowledged was acknowledged: all 500 entries are of batch $found"
        [ "$found" -ge "$acknowledged" ] && [ "$found" -le $((acknowledged + 1)) ] || fail 'a batch is missing'
    done
    claim 'no half batch, and none that was acknowledged is missing'
}
