# Puts two larders in front of a Redis cluster. Sourced by tour.sh.

# Prints three free ports for the servers of a cluster; each server also uses the port 10,000 above.
cluster_ports() {
    python3 - <<'PYTHON'
import random, socket

def is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True

ports = []
while len(ports) < 3:
    port = random.randrange(20000, 30000)
    if port not in ports and is_free(port) and is_free(port + 10000):
        ports.append(port)
print(*ports)
PYTHON
}

start_cluster() {
    local port
    read -r -a ports <<<"$(cluster_ports)"
    servers=()
    for port in "${ports[@]}"; do
        mkdir "redis-$port"
        redis-server --port "$port" --bind 127.0.0.1 --dir "redis-$port" --save '' --cluster-enabled yes \
            --cluster-node-timeout 1000 --cluster-require-full-coverage no >"redis-$port/log" 2>&1 &
        servers+=($!)
    done
    for port in "${ports[@]}"; do wait_until "redis-cli -p $port PING"; done
    must "redis-cli --cluster create 127.0.0.1:${ports[0]} 127.0.0.1:${ports[1]} 127.0.0.1:${ports[2]} --cluster-yes | grep -o 'All 16384 slots covered'"
    for port in "${ports[@]}"; do wait_until "redis-cli -p $port CLUSTER INFO | grep -q cluster_state:ok"; done
}

show_origin() {
    local side slot index
    step 'In front of a Redis cluster: two larders, as on two machines'
    start_cluster
    fronts=()
    for side in east west; do
        larderd --dir "$side" --socket "$side.sock" --log-level warning >"$side.log" 2>&1 &
        fronts+=($!)
        wait_until "larderctl --socket $side.sock ping"
        must "larderctl --socket $side.sock --database 0 policy low --grace 3600"
        must "larderctl --socket $side.sock origin 0 redis+cluster://127.0.0.1:${ports[0]} THROUGH STALE"
    done
    must "redis-cli -c -p ${ports[0]} SET price 3.20"
    for side in east west; do
        must "redis-cli -s $side.sock GET price"
        same "$output" 3.20
    done
    claim 'both read through to the cluster'

    say 'Another client changes the value in the cluster directly. Readers get the new value within 750 ms:'
    must "redis-cli -c -p ${ports[1]} SET price 3.40"
    sleep 0.75
    for side in east west; do
        must "redis-cli -s $side.sock GET price"
        same "$output" 3.40
    done
    must 'redis-cli -s east.sock SET price 3.60'
    must "redis-cli -c -p ${ports[2]} GET price"
    same "$output" 3.60
    sleep 0.75
    must 'redis-cli -s west.sock GET price'
    same "$output" 3.60
    claim 'all readers see a change, regardless of who made it'

    slot=$(redis-cli -p "${ports[0]}" CLUSTER KEYSLOT price)
    for index in 0 1 2; do
        [ "$(redis-cli -p "${ports[$index]}" CLUSTER COUNTKEYSINSLOT "$slot")" = 1 ] && break
    done
    printf '   $ kill -KILL %s   # the server that has the key\n' "${servers[$index]}"
    end_process KILL "${servers[$index]}"
    for side in east west; do
        must "redis-cli -s $side.sock GET price"
        same "$output" 3.60
    done
    sleep 1
    for side in east west; do
        must "redis-cli -s $side.sock GET price"
        same "$output" 3.60
    done
    must 'larderctl --socket west.sock FETCH price | head -n 2'
    expect 'stale'
    claim 'with a server of the cluster down, readers still get the cached value, and FETCH reports it as stale'

    end_process TERM "${fronts[0]}"
    end_process TERM "${fronts[1]}"
    for index in 0 1 2; do end_process KILL "${servers[$index]}"; done
}
