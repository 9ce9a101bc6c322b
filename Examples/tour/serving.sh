# Starts the daemon, and other processes that use it. Sourced by tour.sh.

# Starts larderd and waits until it replies. Its log is larderd.log.
start_daemon() {
    printf '   $ larderd --dir larder --socket larder.sock &\n'
    larderd --dir larder --socket larder.sock 2>>larderd.log &
    daemon=$!
    hint=$work/larderd.log
    wait_until "larderctl --socket larder.sock ping || ! kill -0 $daemon"
    kill -0 "$daemon" 2>/dev/null || fail 'larderd did not start'
}

serve_the_larder() {
    step 'larderd serves the larder to every process of this user'
    start_daemon
    sed 's/^/     /' larderd.log
    must 'larderctl --socket larder.sock databases'
    expect 'installed'
    try 'package-catalog show --directory larder bash'
    [ "$code" = 3 ] || fail 'two processes have opened one larder'
    expect "$daemon"
    expect 'larder.sock'
    claim 'only one process can open a larder; a second one gets an error with the process ID and socket of the first'
}

ask_from_other_processes() {
    step 'Other processes read and write'
    local key="bash:$architecture"
    say 'A shell, with a plain socket tool:'
    must "printf 'PING\\r\\nSELECT installed\\r\\nSTRLEN $key\\r\\n' | nc -N -U larder.sock"
    expect '+PONG'
    must "sh clients/larder.sh larder.sock SET greeting 'hello from a shell'"
    must "sh clients/larder.sh larder.sock GET greeting"
    same "$output" 'hello from a shell'
    say 'redis-cli:'
    must 'redis-cli -s larder.sock GET greeting'
    same "$output" 'hello from a shell'
    must "printf 'SELECT installed\\nDBSIZE\\n' | redis-cli -s larder.sock"
    same "$output" "OK
$installed_entries"
    must "printf 'SELECT installed\\nGET $key\\n' | redis-cli -s larder.sock | grep -o '\"status\":\"[^\"]*\"'"
    same "$output" '"status":"install ok installed"'
    say 'Python, with its socket module:'
    cat >version.py <<'EOF'
import json, sys
sys.path.insert(0, "clients")
from larder import Larder

with Larder("larder.sock", database="installed") as larder:
    record = json.loads(larder.command("GET", sys.argv[1]))
    wanted = [choice["name"] for need in record["relations"]["Depends"] for choice in need["alternatives"]]
    print(record["version"], "depends on", ", ".join(wanted))
EOF
    sed 's/^/     | /' version.py
    must "python3 version.py $key"
    expect "$bash_version depends on "
    say 'A C program:'
    must 'larder-c larder.sock MGET greeting nothing-here greeting'
    same "$output" 'hello from a shell

hello from a shell'
    say "Larder's own tool, and its Swift client:"
    must "larderctl --socket larder.sock --database installed meta $key"
    expect "its database's policy, low"
    lines_max=4
    must "package-catalog show --socket larder.sock $key"
    lines_max=12
    expect "version $bash_version"
    claim "all of them see the entries stored by the Swift program, and each other's writes"
}

watch_it_expire() {
    step 'Entries expire'
    must "redis-cli -s larder.sock SET fleeting 'here for two seconds' PX 2000"
    must 'redis-cli -s larder.sock --no-raw GET fleeting'
    same "$output" '"here for two seconds"'
    say 'A database with a policy of two seconds, and an entry that follows it:'
    must 'larderctl --socket larder.sock --database news policy 2'
    must "larderctl --socket larder.sock --database news set headline 'fresh bread'"
    must 'larderctl --socket larder.sock --database news get headline'
    same "$output" 'fresh bread'
    must 'larderctl --socket larder.sock --database news meta headline'
    say '(two seconds later)'
    sleep 2.1
    must 'redis-cli -s larder.sock --no-raw GET fleeting'
    same "$output" '(nil)'
    try 'larderctl --socket larder.sock --database news get headline'
    [ "$code" = 1 ] || fail 'the entry is still there'
    must 'larderctl --socket larder.sock --database news policy low'
    try 'larderctl --socket larder.sock --database news get headline'
    [ "$code" = 1 ] || fail 'the entry came back'
    claim 'both entries expired, and a longer policy does not make an expired entry fresh again'
}

show_snapshot_and_batch() {
    step 'A snapshot and an atomic batch, over the socket'
    must 'python3 clients/snapshot.py larder.sock'
    expect 'in the snapshot:   bread 3.20, milk 1.15, salt nothing'
    claim "a snapshot of one connection does not contain another connection's later writes"
    must 'redis-cli -s larder.sock MSET account:a 40 account:b 60'
    must 'redis-cli -s larder.sock MGET account:a account:b'
    same "$output" '40
60'
    claim 'MSET stores several entries, all or none of them: the next step kills the daemon during many such commands'
}
