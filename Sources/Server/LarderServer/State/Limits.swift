import LarderEngine
import LarderOriginClients
import LarderRESP

/// The daemon's limits. The initial values are the defaults.
package struct Limits: Sendable {
    /// Connections that may be open at the same time (`--max-clients`).
    package var clientsMax = 10_000
    /// If a client has this many bytes of unread replies, its next command waits: 8 MiB.
    package var outputBytesPause = 8 << 20
    /// Bytes of requests that the daemon reads while the client does not read its replies: 64 MiB. Many clients send
    /// all their requests before they read the first reply.
    package var inputBytesPause = 64 << 20
    /// Bytes of all values in the reply of one command such as MGET (`--max-reply`): 512 MiB, the maximum length of a
    /// value.
    package var replyBytesMax = 512 << 20
    /// Bytes of a value that a command builds: 512 MiB, the maximum length of an argument.
    package var valueBytesMax = Record.payloadBytesMax
    /// How long a client may leave replies unread before it is disconnected, in milliseconds: 1 minute. The option
    /// `--reply-timeout` sets it in seconds.
    package var outputStallMilliseconds: Int64 = 60_000
    /// Bytes of messages that a subscriber may leave unread before it is disconnected (`--max-subscriber-output`): 32
    /// MiB.
    package var subscriberBytesMax = 32 << 20
    /// Bytes of messages that a subscriber may leave unread only for ``subscriberSoftMilliseconds``: a quarter of
    /// ``subscriberBytesMax``.
    package var subscriberBytesSoft: Int { subscriberBytesMax / 4 }
    /// How long a subscriber may have more than ``subscriberBytesSoft`` unread bytes, in milliseconds: 1 minute.
    package var subscriberSoftMilliseconds: Int64 = 60_000
    /// Bytes of messages that wait in the queues of event loops: 64 MiB. If there are more, publishers wait.
    package var undeliveredBytesMax = 64 << 20
    /// Keys that are tracked for all clients with CLIENT TRACKING together (`--max-tracked-keys`).
    package var trackedKeysMax = 1_000_000
    /// Deadlines of entries whose expiry will be reported (`--max-watched-deadlines`).
    package var watchedDeadlinesMax = 1_000_000
    /// Snapshots that all connections together may have open.
    package var snapshotsMax = 64
    /// How long a snapshot may stay open, in milliseconds: 5 minutes. Until then LevelDB keeps the snapshot's files.
    package var snapshotMilliseconds: Int64 = 300_000
    /// Databases that are opened when the server starts. Other databases are opened when they are first used.
    package var databasesOpenedAtStart = 64
    /// Cursors of SCAN that the daemon remembers.
    package var scanCursorsMax = 4096
    /// Threads for commands that must read the disk.
    package var coldThreads = 4
    /// Commands that a connection may run on a thread that may block, before it returns to its event loop.
    package var coldSliceCommands = 1024
    /// How long a connection may start commands on a thread that may block, in milliseconds.
    package var coldSliceMilliseconds: Int64 = 10
    /// Bytes of the commands between MULTI and EXEC (`--max-transaction`): 64 MiB per connection.
    package var transactionBytesMax = 64 << 20
    /// How long a script may run, in milliseconds (`--script-time-limit`): 5 s.
    package var scriptMilliseconds: Int64 = 5_000
    /// Bytes of memory that the interpreter of one script may use (`--max-script-memory`): 64 MiB.
    package var scriptMemoryMax = 64 << 20
    /// Bytes of the source texts of all cached scripts (`--max-scripts`): 16 MiB.
    package var scriptsBytesMax = 16 << 20
    /// Keys that one connection may watch with WATCH (`--max-watched-keys`).
    package var watchedKeysMax = 10_000
    /// The time limits for the origins of databases.
    package var origin = OriginLimits()
    /// Entries that are tracked as current in each database with an origin (`--max-origin-keys`).
    package var originKeysMax = 1_000_000
    /// How long a command waits for an origin before it may return a stale value, in milliseconds
    /// (`--origin-patience`). 0: the command waits until the origin has failed.
    package var originPatience: Int64 = 0
    /// Leases that one connection may have (`--max-leases`).
    package var leasesMax = 10_000
    /// Bytes of the names of channels and patterns that one connection may subscribe to (`--max-subscriptions`): 16
    /// MiB. The same limit applies to the prefixes that the connection tracks.
    package var subscriptionBytesMax = 16 << 20
    /// How long a connection may send no request before it is closed, in seconds (`--timeout`); 0 for no limit.
    package var idleSeconds = 0
    /// The minimum duration of commands in the slow log, in microseconds (`--slowlog-log-slower-than`); negative for
    /// none.
    package var slowMicroseconds: Int64 = 10_000
    /// Commands that the slow log keeps (`--slowlog-max-len`).
    package var slowCommandsMax = 128
    /// The duration from which an event is recorded for LATENCY, in milliseconds (`--latency-monitor-threshold`); 0 for
    /// none.
    package var latencyMilliseconds: Int64 = 0
    /// Whether the command DEBUG is allowed (`--enable-debug`).
    package var allowsDebug = false
    /// How long the daemon waits at its shutdown for clients to read their replies, in milliseconds.
    package var stopMilliseconds: Int64 = 5_000
    /// The limits for the lengths of requests and their words.
    package var requests = RESPLimits()

    /// CPU time of all scripts in one transaction, in milliseconds. While they run, the transaction holds its locks.
    package static let scriptInTransactionMilliseconds: Int64 = 100
    /// Scripts of EVAL that the daemon caches.
    package static let evaluatedScriptsMax = 500
    /// Entries that one call of SCAN reads at most.
    package static let scanCountMax = 1_000_000
    /// Entries that the reply of one ENTRIES command contains at most.
    package static let entriesCountMax = 10_000
    /// Bytes that a command may receive, build or process on an event loop: 1 MiB. Commands with more bytes run on
    /// other threads.
    static let loopBytesMax = 1 << 20
    /// After this many bytes of replies to a series of GETs, an event loop may read the clock again: 64 KiB.
    static let loopCopyBytesMax = 64 << 10
    /// Bytes of writes that an event loop commits itself: 4 MiB. If there are more, the pipeline's thread commits them.
    static let loopCommitBytesMax = 4 << 20
    /// Bytes of memory that a subscribed name uses in addition to its own bytes.
    package static let subscriptionOverheadBytes = 128
    /// Bytes of keys after which one call of SCAN stops reading: 16 MiB.
    package static let scanBytesMax = 16 << 20
    /// Bytes of memory that a key uses in addition to its own bytes while KEYS collects it.
    static let listedKeyOverheadBytes = 64
    /// Commands that a connection may run on its event loop before the loop serves other connections.
    static let loopCommandsMax = 4096
    /// Reads of up to 64 KiB that a connection may do before its loop serves other connections.
    static let loopReadsMax = 4
    /// Words of a command that may run on an event loop. A command with more words runs on a thread that may block.
    static let loopArgumentsMax = 4096
    /// Bytes of memory that an entry uses in addition to its key and its record: see docs/Architecture.md.
    static let entryOverheadBytes = 112
    /// The length limit for the names of a connection, its library and the library's version, in bytes.
    static let clientNameBytesMax = 256

    package init() {}
}

extension CommandError {
    static func tooLongReply(_ limits: Limits) -> CommandError {
        CommandError(
            "ERR the values exceed \(limits.replyBytesMax) bytes, the limit for one reply (--max-reply)"
        )
    }
}
