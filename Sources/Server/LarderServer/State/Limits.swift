import LarderEngine
import LarderOriginClients
import LarderRESP

/// The daemon's limits, each with its default.
package struct Limits: Sendable {
    /// Connections at a time (`--max-clients`).
    package var clientsMax = 10_000
    /// Bytes of unread replies above which a client's further commands wait: 8 MiB.
    package var outputBytesPause = 8 << 20
    /// Bytes of requests that are still accepted from a client with too many unread replies: 64 MiB. Many clients send
    /// all their requests before they read the first reply.
    package var inputBytesPause = 64 << 20
    /// Total bytes of the values of one MGET (`--max-reply`): 512 MiB, the length of the longest value.
    package var replyBytesMax = 512 << 20
    /// Bytes of a value that a command builds: 512 MiB, the length of the longest argument.
    package var valueBytesMax = Record.payloadBytesMax
    /// How long a client may leave replies unread before it is disconnected, in milliseconds (`--reply-timeout`, in
    /// seconds): 1 minute.
    package var outputStallMilliseconds: Int64 = 60_000
    /// Bytes of messages that a subscriber may leave unread before it is disconnected (`--max-subscriber-output`): 32 MiB.
    package var subscriberBytesMax = 32 << 20
    /// Bytes of messages that a subscriber may leave unread for at most ``subscriberSoftMilliseconds``: a quarter of
    /// ``subscriberBytesMax``.
    package var subscriberBytesSoft: Int { subscriberBytesMax / 4 }
    /// How long a subscriber may have more than ``subscriberBytesSoft`` unread, in milliseconds: 1 minute.
    package var subscriberSoftMilliseconds: Int64 = 60_000
    /// Bytes of messages that may wait for busy loops before publishers wait: 64 MiB.
    package var undeliveredBytesMax = 64 << 20
    /// Keys tracked for all tracking clients (`--max-tracked-keys`).
    package var trackedKeysMax = 1_000_000
    /// Deadlines of entries watched for notifications of expiry (`--max-watched-deadlines`).
    package var watchedDeadlinesMax = 1_000_000
    /// Open snapshots of all connections.
    package var snapshotsMax = 64
    /// How long a snapshot may stay open, in milliseconds: 5 minutes. An open snapshot prevents the removal of files.
    package var snapshotMilliseconds: Int64 = 300_000
    /// Databases opened when the server starts; the others are opened at their first use.
    package var databasesOpenedAtStart = 64
    /// Cursors of SCAN that are remembered.
    package var scanCursorsMax = 4096
    /// Threads for commands that must read the disk.
    package var coldThreads = 4
    /// Commands that a connection may run on a thread that may block, before it returns to its event loop.
    package var coldSliceCommands = 1024
    /// How long a connection may run commands on a thread that may block, in milliseconds: no further command starts
    /// after that.
    package var coldSliceMilliseconds: Int64 = 10
    /// Bytes of the commands between MULTI and EXEC (`--max-transaction`): 64 MiB for each connection.
    package var transactionBytesMax = 64 << 20
    /// The run time of a script, in milliseconds (`--script-time-limit`): 5 s.
    package var scriptMilliseconds: Int64 = 5_000
    /// Bytes of one script's interpreter (`--max-script-memory`): 64 MiB.
    package var scriptMemoryMax = 64 << 20
    /// Bytes of the sources of all cached scripts (`--max-scripts`): 16 MiB.
    package var scriptsBytesMax = 16 << 20
    /// Keys that one connection may watch (`--max-watched-keys`).
    package var watchedKeysMax = 10_000
    /// Limits of the origins of databases.
    package var origin = OriginLimits()
    /// Entries of a database with an origin that are tracked as current (`--max-origin-keys`).
    package var originKeysMax = 1_000_000
    /// The time after which a command that waits for an origin may return a stale value, in milliseconds
    /// (`--origin-patience`); 0: only after the origin has failed.
    package var originPatience: Int64 = 0
    /// Leases of one connection (`--max-leases`).
    package var leasesMax = 10_000
    /// Bytes of one connection's channel and pattern names, and separately of its tracked prefixes
    /// (`--max-subscriptions`): 16 MiB each.
    package var subscriptionBytesMax = 16 << 20
    /// Seconds without a request after which a connection is closed (`--timeout`); 0 for never.
    package var idleSeconds = 0
    /// The minimum duration of a command in the slow log, in microseconds (`--slowlog-log-slower-than`); negative for
    /// none.
    package var slowMicroseconds: Int64 = 10_000
    /// Commands kept in the slow log (`--slowlog-max-len`).
    package var slowCommandsMax = 128
    /// The minimum duration of an event for LATENCY, in milliseconds (`--latency-monitor-threshold`); 0 for none.
    package var latencyMilliseconds: Int64 = 0
    /// Whether DEBUG is enabled (`--enable-debug`).
    package var allowsDebug = false
    /// How long the shutdown waits for clients to read their replies, in milliseconds.
    package var stopMilliseconds: Int64 = 5_000
    /// The limits for the lengths of requests.
    package var requests = RESPLimits()

    /// CPU time of the scripts of one transaction, in milliseconds. The transaction holds its locks meanwhile.
    package static let scriptInTransactionMilliseconds: Int64 = 100
    /// Scripts of EVAL that are cached.
    package static let evaluatedScriptsMax = 500
    /// The most entries that one SCAN reads.
    package static let scanCountMax = 1_000_000
    /// The most entries in the reply of one ENTRIES.
    package static let entriesCountMax = 10_000
    /// Bytes that a command may receive, build or repeatedly process on an event loop: 1 MiB. With more, it runs on a
    /// thread that may block.
    static let loopBytesMax = 1 << 20
    /// Bytes of replies after which consecutive requests read the clock again: 64 KiB.
    static let loopCopyBytesMax = 64 << 10
    /// Bytes that an event loop writes to the journal itself: 4 MiB. More are left to the pipeline's thread.
    static let loopCommitBytesMax = 4 << 20
    /// The memory of a subscribed name in addition to its bytes.
    package static let subscriptionOverheadBytes = 128
    /// Bytes of keys after which one SCAN stops reading: 16 MiB.
    package static let scanBytesMax = 16 << 20
    /// The memory of a key in addition to its bytes while KEYS collects it.
    static let listedKeyOverheadBytes = 64
    /// Commands that a connection may run on its event loop before other connections are served.
    static let loopCommandsMax = 4096
    /// Reads of 64 KiB that a connection may do before other connections are served.
    static let loopReadsMax = 4
    /// Words of a command on an event loop. With more, it runs on a thread that may block.
    static let loopArgumentsMax = 4096
    /// The memory of an entry in addition to its key and record, in bytes: see docs/Architecture.md.
    static let entryOverheadBytes = 112
    /// The longest name of a connection, library or version, in bytes.
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
