import LarderEngine
import LarderOriginClients
import LarderRESP

/// The daemon's limits, each with its default.
package struct Limits: Sendable {
    /// Connections at a time (`--max-clients`).
    package var clientsMax = 10_000
    /// Bytes of replies that a client may leave unread before its further commands wait: 8 MiB.
    package var outputBytesPause = 8 << 20
    /// Bytes of requests that are accepted from such a client before it is no longer read from: 64 MiB. Many clients
    /// send all their requests before they read the first reply.
    package var inputBytesPause = 64 << 20
    /// Total bytes of the values of one MGET (`--max-reply`): 512 MiB, the length of the longest value.
    package var replyBytesMax = 512 << 20
    /// Bytes of a value that a command builds: 512 MiB, the length of the longest word of a request.
    package var valueBytesMax = Record.payloadBytesMax
    /// How long a client may leave replies unread without taking any, in milliseconds, before it is disconnected
    /// (`--reply-timeout`, in seconds): 1 minute.
    package var outputStallMilliseconds: Int64 = 60_000
    /// Bytes of messages that a subscriber may leave unread before it is disconnected (`--max-subscriber-output`): 32 MiB.
    package var subscriberBytesMax = 32 << 20
    /// Bytes of messages that a subscriber may leave unread for at most ``subscriberSoftMilliseconds``: a quarter of
    /// ``subscriberBytesMax``.
    package var subscriberBytesSoft: Int { subscriberBytesMax / 4 }
    /// How long a subscriber may have more than ``subscriberBytesSoft`` unread, in milliseconds: 1 minute.
    package var subscriberSoftMilliseconds: Int64 = 60_000
    /// Bytes of messages that may wait for busy loops before publishers wait too: 64 MiB.
    package var undeliveredBytesMax = 64 << 20
    /// How many keys are remembered for all clients that track what they read (`--max-tracked-keys`).
    package var trackedKeysMax = 1_000_000
    /// How many deadlines of entries are watched for notifications of expiry (`--max-watched-deadlines`).
    package var watchedDeadlinesMax = 1_000_000
    /// How many snapshots all connections together may have open.
    package var snapshotsMax = 64
    /// How long a snapshot may stay open, in milliseconds: 5 minutes. It pins files.
    package var snapshotMilliseconds: Int64 = 300_000
    /// How many databases are opened when the server starts; the others are opened when they are used.
    package var databasesOpenedAtStart = 64
    /// How many cursors of SCAN are remembered.
    package var scanCursorsMax = 4096
    /// Threads for commands that must read the disk.
    package var coldThreads = 4
    /// How many commands a connection may run on such a thread before it goes back to its event loop.
    package var coldSliceCommands = 1024
    /// How long a connection may run commands on such a thread, in milliseconds: no further command begins then.
    package var coldSliceMilliseconds: Int64 = 10
    /// Bytes of the commands between MULTI and EXEC (`--max-transaction`): 64 MiB for each connection.
    package var transactionBytesMax = 64 << 20
    /// How long a script may run, in milliseconds (`--script-time-limit`): 5 s.
    package var scriptMilliseconds: Int64 = 5_000
    /// Bytes of one script's interpreter (`--max-script-memory`): 64 MiB.
    package var scriptMemoryMax = 64 << 20
    /// Bytes of the texts of all scripts that are kept (`--max-scripts`): 16 MiB.
    package var scriptsBytesMax = 16 << 20
    /// Keys that one connection may watch (`--max-watched-keys`).
    package var watchedKeysMax = 10_000
    /// Limits of the origins of databases.
    package var origin = OriginLimits()
    /// How many entries of a database with an origin are known to be what it has (`--max-origin-keys`).
    package var originKeysMax = 1_000_000
    /// After which time a command that waits for an origin may have what is stale, in milliseconds
    /// (`--origin-patience`); 0: when the origin has failed.
    package var originPatience: Int64 = 0
    /// Leases that one connection may have at a time (`--max-leases`).
    package var leasesMax = 10_000
    /// Bytes of the names of one connection's channels and patterns, and also of its tracked prefixes
    /// (`--max-subscriptions`): 16 MiB each.
    package var subscriptionBytesMax = 16 << 20
    /// Seconds without a request after which a connection is closed (`--timeout`); 0 for never.
    package var idleSeconds = 0
    /// The least time of a command in the slow log, in microseconds (`--slowlog-log-slower-than`); negative for none.
    package var slowMicroseconds: Int64 = 10_000
    /// How many commands the slow log keeps (`--slowlog-max-len`).
    package var slowCommandsMax = 128
    /// The least time of an event that LATENCY keeps, in milliseconds (`--latency-monitor-threshold`); 0 for none.
    package var latencyMilliseconds: Int64 = 0
    /// Whether DEBUG exists (`--enable-debug`).
    package var allowsDebug = false
    /// How long a stop waits for clients to take their replies, in milliseconds.
    package var stopMilliseconds: Int64 = 5_000
    /// The limits for the lengths of requests.
    package var requests = RESPLimits()

    /// How much CPU time the scripts of a transaction, which hold its locks, may use, in milliseconds.
    package static let scriptInTransactionMilliseconds: Int64 = 100
    /// How many scripts of EVAL are kept.
    package static let evaluatedScriptsMax = 500
    /// The most entries that one SCAN reads.
    package static let scanCountMax = 1_000_000
    /// The most entries in the reply of one ENTRIES.
    package static let entriesCountMax = 10_000
    /// Bytes that a command may bring, build or repeatedly process on an event loop: 1 MiB. With more it runs on a
    /// thread that may block.
    static let loopBytesMax = 1 << 20
    /// After this many bytes of replies, consecutive requests read the time again: 64 KiB.
    static let loopCopyBytesMax = 64 << 10
    /// Bytes that an event loop writes to the journal itself: 4 MiB. More is left to the pipeline's thread.
    static let loopCommitBytesMax = 4 << 20
    /// The memory of a subscribed name beyond its bytes.
    package static let subscriptionOverheadBytes = 128
    /// After this many bytes of keys, one SCAN reads no more entries: 16 MiB.
    package static let scanBytesMax = 16 << 20
    /// The memory of a key beyond its bytes while KEYS collects it.
    static let listedKeyOverheadBytes = 64
    /// How many commands a connection may run on its event loop before others have their turn.
    static let loopCommandsMax = 4096
    /// How many reads of 64 KiB a connection may do before others have their turn.
    static let loopReadsMax = 4
    /// How many words a command on an event loop may have. With more it runs on a thread that may block.
    static let loopArgumentsMax = 4096
    /// The memory of an entry beyond its key and record, in bytes: see docs/Architecture.md.
    static let entryOverheadBytes = 112
    /// The longest name of a connection, library or version, in bytes.
    static let clientNameBytesMax = 256

    package init() {}
}

extension CommandError {
    static func tooLongReply(_ limits: Limits) -> CommandError {
        CommandError(
            "ERR the values are longer than \(limits.replyBytesMax) bytes together, the most in one reply (--max-reply)"
        )
    }
}
