# Purges databases from the command line, and ends the tour. Sourced by tour.sh.

purge() {
    step 'Purging from the command line: with the daemon running, and stopped'
    must 'larderd --dir larder --purge=work'
    expect "purged database 'work': "
    must 'larderctl --socket larder.sock --database work keys'
    same "$output" ''
    must "printf 'SELECT installed\\nDBSIZE\\n' | redis-cli -s larder.sock"
    same "$output" "OK
$installed_entries"
    claim 'one database is empty at once, the others are unchanged'

    printf '   $ kill %s\n' "$daemon"
    end_process TERM "$daemon"
    same "$code" 0
    tail -n 2 larderd.log | sed 's/^/     /'
    [ ! -e larder.sock ] || fail 'the socket is still there'
    must 'larderd --dir larder --purge-expired'
    must 'larderd --dir larder --purge'
    expect "purged database 'installed': $installed_entries entries"
    try 'package-catalog show --directory larder bash'
    [ "$code" = 1 ] || fail 'some entries are left'
    claim 'if the daemon is not running, the same option purges the files directly'
}

end_tour() {
    step 'Everything is stopped and cleaned up'
    local directory=$work
    [ -z "$(jobs -pr)" ] || fail "still running: $(jobs -pr)"
    clean_up
    [ ! -e "$directory" ] || fail "$directory is still there"
    claim "no process is left, and $directory is gone"
    printf '\n%sThe tour showed %d claims in %d seconds.%s\n' "$bold" "$claims" $((SECONDS - begin_seconds)) "$plain"
}
