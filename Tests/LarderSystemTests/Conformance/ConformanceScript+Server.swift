extension ConformanceScript {
    /// RESET switches the connection back to RESP2, so these steps come last.
    static let administration = #"""
        CONFIG RESETSTAT
        CONFIG SET maxmemory abc
        CONFIG SET nosuch 1
        CONFIG SET maxmemory 1 maxmemory 2
        CONFIG SET timeout -1
        CONFIG SET databases 4
        CONFIG SET maxclients 0
        CONFIG SET loglevel loud
        CONFIG SET loglevel WARNING
        CONFIG GET loglevel
        CONFIG SET loglevel notice
        CONFIG GET loglevel
        CONFIG SET appendonly maybe
        CONFIG SET maxmemory
        CONFIG SET maxmemory -1
        CONFIG SET maxmemory 100mb
        CONFIG GET maxmemory
        CONFIG SET MAXMEMORY 1gb tracking-table-max-keys 7
        CONFIG GET maxmemory
        CONFIG GET tracking-table-max-keys
        CONFIG SET tracking-table-max-keys -1
        CONFIG SET tracking-table-max-keys abc
        CONFIG SET tracking-table-max-keys 0
        CONFIG GET tracking-table-max-keys
        CONFIG SET client-output-buffer-limit "pubsub 1 2"
        CONFIG SET client-output-buffer-limit "bad 1 2 3"
        CONFIG SET client-output-buffer-limit "pubsub 1 2 x"
        CONFIG SET client-output-buffer-limit "pubsub 1 2 -1"
        CONFIG SET client-output-buffer-limit "pubsub -1 2 3"
        CONFIG SET client-output-buffer-limit "pubsub 1x 2 3"
        CONFIG SET client-output-buffer-limit "master 1 2 3"
        CONFIG SET client-output-buffer-limit pubsub 1 2 3
        CONFIG SET client-output-buffer-limit "pubsub 32mb 8mb 60 PUBSUB 32m 8m 60"
        CONFIG SET client-output-buffer-limit ""
        CONFIG SET unixsocket x
        CONFIG SET unixsocketperm 700
        CONFIG SET cluster-enabled yes
        CONFIG SET io-threads 2
        CONFIG SET enable-debug-command yes
        CONFIG SET dir /nowhere
        CONFIG SET dbfilename x
        CONFIG GET nosuch
        CONFIG GET
        CONFIG BAD
        ROLE
        WAIT 0 0
        WAIT 1 1
        WAIT a 1
        WAIT a b
        WAIT a -1
        SLOWLOG GET 1 2
        slowlog gET 1 2 3
        WAIT 1 a
        WAIT 1 -1
        SLOWLOG GET -2
        SLOWLOG GET abc
        SLOWLOG RESET
        SLOWLOG BAD
        LATENCY LATEST
        LATENCY HISTORY command
        LATENCY RESET
        LATENCY RESET a b
        LATENCY GRAPH command
        LATENCY HISTOGRAM set
        LATENCY HISTOGRAM nosuch
        LATENCY BAD
        AUTH a
        AUTH default b
        AUTH nobody b
        AUTH a b c
        AUTH
        TIME x
        COMMAND GETKEYS
        COMMAND GETKEYS GET
        COMMAND GETKEYS GET a
        COMMAND GETKEYS MSET a 1 b 2
        COMMAND GETKEYS PING
        COMMAND GETKEYS SPUBLISH a b
        COMMAND GETKEYS SSUBSCRIBE a b
        COMMAND GETKEYSANDFLAGS SPUBLISH a b
        COMMAND GETKEYS NOSUCH a
        COMMAND GETKEYS MGET a b c
        COMMAND GETKEYSANDFLAGS SET a b
        COMMAND GETKEYSANDFLAGS SET a b NX EX 10
        COMMAND GETKEYSANDFLAGS SET a GET
        COMMAND GETKEYSANDFLAGS SET a b NX get
        COMMAND GETKEYSANDFLAGS SET a b BAD GET x
        COMMAND GETKEYSANDFLAGS BITFIELD a
        COMMAND GETKEYSANDFLAGS BITFIELD a GET u8 0 OVERFLOW SAT get u8 1
        COMMAND GETKEYSANDFLAGS BITFIELD a GET u8
        COMMAND GETKEYSANDFLAGS BITFIELD a GET u8 0 SET u8 0 1
        COMMAND GETKEYSANDFLAGS BITFIELD a GET u8 0 BAD
        COMMAND GETKEYSANDFLAGS BITFIELD_RO a GET u8 0
        COMMAND GETKEYSANDFLAGS GETEX a EX 10
        COMMAND GETKEYSANDFLAGS MSET a 1 b 2
        COMMAND GETKEYSANDFLAGS LCS a b LEN
        COMMAND GETKEYSANDFLAGS MGET a b
        COMMAND GETKEYSANDFLAGS DEL a b
        COMMAND GETKEYSANDFLAGS PING
        COMMAND LIST FILTERBY MODULE x
        COMMAND LIST FILTERBY BAD x
        COMMAND LIST FILTERBY ACLCAT
        COMMAND LIST x
        CLIENT KILL
        CLIENT KILL ID
        CLIENT KILL ID a
        CLIENT KILL ID 0
        CLIENT KILL ID 99999
        CLIENT KILL TYPE bad
        CLIENT KILL TYPE pubsub
        CLIENT KILL USER nobody
        CLIENT KILL ADDR a
        CLIENT KILL LADDR a
        CLIENT KILL SKIPME maybe
        CLIENT KILL BAD x
        CLIENT KILL ID 1 2
        CLIENT LIST TYPE bad
        CLIENT LIST TYPE pubsub
        CLIENT LIST ID a
        CLIENT LIST ID 999999
        CLIENT LIST ID
        CLIENT LIST BAD
        CLIENT LIST TYPE
        CLIENT PAUSE
        CLIENT PAUSE a
        CLIENT PAUSE -1
        CLIENT PAUSE 1 BAD
        CLIENT PAUSE 0 WRITE
        CLIENT UNPAUSE
        CLIENT UNPAUSE x
        CLIENT REPLY
        CLIENT REPLY BAD
        CLIENT REPLY ON
        CLIENT NO-EVICT
        CLIENT NO-EVICT BAD
        CLIENT NO-EVICT ON
        CLIENT NO-EVICT OFF
        CLIENT UNBLOCK
        CLIENT UNBLOCK a
        CLIENT UNBLOCK 99999
        CLIENT UNBLOCK 99999 TIMEOUT
        CLIENT UNBLOCK 99999 BAD
        CLIENT UNBLOCK 99999 ERROR x
        CONFIG REWRITE
        CLIENT KILL a
        SAVE
        CONFIG SET timeout abc
        CONFIG SET timeout 0 nosuch 1
        CONFIG SET slowlog-log-slower-than 20000 slowlog-max-len 64
        CONFIG GET slowlog-max-len
        CONFIG GET SLOWLOG-MAX-LEN
        CONFIG SET slowlog-log-slower-than 10000 slowlog-max-len 128
        CONFIG SET slowlog-max-len -1
        CONFIG SET latency-monitor-threshold 100
        CONFIG GET latency-monitor-threshold
        CONFIG SET latency-monitor-threshold 0
        CONFIG SET appendonly maybe
        CONFIG SET a b c
        CONFIG GET timeout timeout
        CLIENT LIST TYPE master
        CLIENT LIST TYPE replica
        CLIENT LIST TYPE slave
        CLIENT LIST ID 99999 88888
        CLIENT LIST TYPE a b
        CLIENT KILL SKIPME yes ID 99999
        CLIENT KILL ID
        CLIENT KILL TYPE slave
        CLIENT PAUSE 1 WRITE EXTRA
        CLIENT NO-EVICT ON
        MULTI
        CLIENT BAD
        EXEC
        MULTI
        CONFIG GET
        EXEC
        MULTI
        SAVE
        EXEC
        MULTI
        ROLE
        WAIT 0 0
        CLIENT GETNAME
        CONFIG GET timeout
        CONFIG SET timeout 0
        CLIENT NO-EVICT OFF
        COMMAND GETKEYS GET a
        SLOWLOG GET -2
        AUTH x
        EXEC
        COMMAND GETKEYS RENAME a b
        COMMAND GETKEYS COPY a b DB 1
        COMMAND GETKEYS BITOP AND d a b c
        COMMAND GETKEYS OBJECT ENCODING k
        COMMAND GETKEYSANDFLAGS COPY a b
        COMMAND GETKEYSANDFLAGS BITOP AND d a b
        COMMAND GETKEYSANDFLAGS RENAME a b
        COMMAND GETKEYSANDFLAGS GETDEL a
        COMMAND INFO nosuch client|nosuch
        COMMAND INFO config|get
        COMMAND LIST FILTERBY PATTERN getd*
        ~COMMAND LIST FILTERBY ACLCAT transaction
        COMMAND LIST FILTERBY ACLCAT nosuch
        COMMAND INFO auth
        COMMAND INFO bgrewriteaof
        COMMAND INFO bgsave
        COMMAND INFO client|getname
        COMMAND INFO client|help
        COMMAND INFO client|id
        COMMAND INFO client|info
        COMMAND INFO client|kill
        COMMAND INFO client|list
        COMMAND INFO client|no-evict
        COMMAND INFO client|pause
        COMMAND INFO client|reply
        COMMAND INFO client|setname
        COMMAND INFO client|unblock
        COMMAND INFO client|unpause
        COMMAND INFO command|count
        COMMAND INFO command|docs
        COMMAND INFO command|getkeys
        COMMAND INFO command|getkeysandflags
        COMMAND INFO command|help
        COMMAND INFO command|info
        COMMAND INFO command|list
        COMMAND INFO config|get
        COMMAND INFO config|help
        COMMAND INFO config|resetstat
        COMMAND INFO config|rewrite
        COMMAND INFO config|set
        COMMAND INFO dbsize
        COMMAND INFO debug
        COMMAND INFO del
        COMMAND INFO discard
        COMMAND INFO echo
        COMMAND INFO exec
        COMMAND INFO exists
        COMMAND INFO expire
        COMMAND INFO expireat
        COMMAND INFO expiretime
        COMMAND INFO flushall
        COMMAND INFO flushdb
        COMMAND INFO get
        COMMAND INFO getdel
        COMMAND INFO hello
        COMMAND INFO info
        COMMAND INFO keys
        COMMAND INFO lastsave
        COMMAND INFO latency|doctor
        COMMAND INFO latency|graph
        COMMAND INFO latency|help
        COMMAND INFO latency|histogram
        COMMAND INFO latency|history
        COMMAND INFO latency|latest
        COMMAND INFO latency|reset
        COMMAND INFO mget
        COMMAND INFO monitor
        COMMAND INFO mset
        COMMAND INFO multi
        COMMAND INFO persist
        COMMAND INFO pexpire
        COMMAND INFO pexpireat
        COMMAND INFO pexpiretime
        COMMAND INFO ping
        COMMAND INFO psubscribe
        COMMAND INFO pttl
        COMMAND INFO publish
        COMMAND INFO punsubscribe
        COMMAND INFO quit
        COMMAND INFO reset
        COMMAND INFO role
        COMMAND INFO save
        COMMAND INFO scan
        COMMAND INFO select
        COMMAND INFO shutdown
        COMMAND INFO slowlog|get
        COMMAND INFO slowlog|help
        COMMAND INFO slowlog|len
        COMMAND INFO slowlog|reset
        COMMAND INFO strlen
        COMMAND INFO subscribe
        COMMAND INFO time
        COMMAND INFO ttl
        COMMAND INFO type
        COMMAND INFO unsubscribe
        COMMAND INFO unwatch
        COMMAND INFO wait
        COMMAND INFO watch
        MULTI
        SET a 1
        RESET
        EXEC
        RESET x
        RESET
        """#
        + "\n"
}
