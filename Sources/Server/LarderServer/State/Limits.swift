import LarderEngine
import LarderOriginClients
import LarderPlatform
import LarderQuerying
import LarderRESP
import Synchronization

/// The daemon's limits. The initial values are the defaults.
package struct Limits: Sendable {
    /// The maximum number of open connections (`--max-clients`).
    package var clientsMax = 10_000
    /// If a client has this many bytes of unread replies, its next command waits: 8 MiB.
    package var outputBytesPause = 8 << 20
    /// The maximum size of the requests that the daemon reads while the client does not read its replies, in bytes: 64
    /// MiB. Many clients send all their requests before they read the first reply.
    package var inputBytesPause = 64 << 20
    /// The maximum size of all values in the reply of one command such as MGET or EXEC, in bytes (`--max-reply`): 512
    /// MiB, the maximum length of a value.
    package var replyBytesMax = 512 << 20
    /// The maximum length of a value that a command builds, in bytes: 512 MiB, the maximum length of an argument.
    package var valueBytesMax = Record.payloadBytesMax
    /// How long a client may leave replies unread before it is disconnected, in milliseconds: 1 minute. The option
    /// `--reply-timeout` sets it in seconds.
    package var outputStallMilliseconds: Int64 = 60_000
    /// The maximum size of a subscriber's unread messages, in bytes (`--max-subscriber-output`): 32 MiB. A subscriber
    /// above this limit is disconnected.
    package var subscriberBytesMax = 32 << 20
    /// The size of unread messages that a subscriber may exceed only for ``subscriberSoftMilliseconds``, in bytes: a
    /// quarter of ``subscriberBytesMax``.
    package var subscriberBytesSoft: Int { subscriberBytesMax / 4 }
    /// How long a subscriber may have more than ``subscriberBytesSoft`` unread bytes, in milliseconds: 1 minute.
    package var subscriberSoftMilliseconds: Int64 = 60_000
    /// The maximum size of the unread output of all clients together, in bytes (`--max-output`); 0 for no limit. Above
    /// it, the clients with the most are disconnected. The default is an eighth of the machine's memory, but at least
    /// 1 GiB, so that two replies of the maximum size fit.
    package var outputBytesMax = max(MachineMemory.bytes / 8, 1 << 30)
    /// The maximum size of the messages in the queues of event loops, in bytes: 64 MiB. Above it, publishers wait.
    package var undeliveredBytesMax = 64 << 20
    /// The maximum number of keys that are tracked for all clients together (`--max-tracked-keys`).
    package var trackedKeysMax = 1_000_000
    /// The maximum memory for the nearest deadlines of entries whose expiry will be reported, in bytes: 16 MiB.
    package var deadlineBytesMax = 16 << 20
    /// The maximum number of snapshots that all connections together may have open.
    package var snapshotsMax = 64
    /// How long a snapshot may stay open, in milliseconds: 5 minutes. Until then LevelDB keeps the snapshot's files.
    package var snapshotMilliseconds: Int64 = 300_000
    /// The number of databases that are opened when the server starts. Other databases are opened at their first use.
    package var databasesOpenedAtStart = 64
    /// The maximum number of cursors of SCAN that the daemon remembers.
    package var scanCursorsMax = 4096
    /// The number of threads for commands that must read the disk.
    package var coldThreads = 4
    /// The maximum number of commands that a connection runs in a row on a thread that may block.
    package var coldSliceCommands = 1024
    /// How long a connection may start commands on a thread that may block, in milliseconds.
    package var coldSliceMilliseconds: Int64 = 10
    /// The maximum size of the commands between MULTI and EXEC, in bytes (`--max-transaction`): 64 MiB per connection.
    package var transactionBytesMax = 64 << 20
    /// How long a script may run, in milliseconds (`--script-time-limit`): 5 s.
    package var scriptMilliseconds: Int64 = 5_000
    /// How many entries a query may examine without an index (`--query-scan`).
    package var queryScanMax = 100_000
    /// How long a query may run, in milliseconds (`--query-time-limit`): 10 s.
    package var queryMilliseconds: Int64 = 10_000
    /// The maximum memory of the interpreter of one script, in bytes (`--max-script-memory`): 64 MiB.
    package var scriptMemoryMax = 64 << 20
    /// The maximum size of the sources of all cached scripts, in bytes (`--max-scripts`): 16 MiB.
    package var scriptsBytesMax = 16 << 20
    /// The maximum number of keys that one connection may watch with WATCH (`--max-watched-keys`).
    package var watchedKeysMax = 10_000
    /// The time limits for the origins of databases.
    package var origin = OriginLimits()
    /// The maximum number of entries that are tracked as current, per database with an origin (`--max-origin-keys`).
    package var originKeysMax = 1_000_000
    /// How long a command waits for an origin before it may return a stale value, in milliseconds
    /// (`--origin-patience`). 0: the command waits until the origin has failed.
    package var originPatience: Int64 = 0
    /// The maximum number of leases of one connection (`--max-leases`).
    package var leasesMax = 10_000
    /// The maximum size of the names of channels and patterns that one connection subscribes to, in bytes
    /// (`--max-subscriptions`): 16 MiB. The same limit applies to the prefixes that the connection tracks.
    package var subscriptionBytesMax = 16 << 20
    /// How long a connection may send no request before it is closed, in seconds (`--timeout`); 0 for no limit.
    package var idleSeconds = 0
    /// The minimum duration of commands in the slow log, in microseconds (`--slowlog-log-slower-than`); negative for
    /// none.
    package var slowMicroseconds: Int64 = 10_000
    /// The maximum number of commands in the slow log (`--slowlog-max-len`).
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

    /// The maximum CPU time of all scripts in one transaction, in milliseconds. They run while locks are held.
    package static let scriptInTransactionMilliseconds: Int64 = 100
    /// The maximum number of scripts of EVAL that the daemon caches.
    package static let evaluatedScriptsMax = 500
    /// The maximum number of entries that one call of SCAN reads.
    package static let scanCountMax = 1_000_000
    /// The maximum number of entries in the reply of one ENTRIES command.
    package static let entriesCountMax = 10_000
    /// The maximum number of bytes that a command may receive, build or process on an event loop: 1 MiB. Commands with
    /// more bytes run on other threads.
    static let loopBytesMax = 1 << 20
    /// Parsing a byte takes about as long as copying this many bytes.
    static let parsingCost = 16
    /// After this many bytes of replies, an event loop ends a series of commands that use the same time: 64 KiB.
    static let loopCopyBytesMax = 64 << 10
    /// An event loop commits writes of up to this many bytes itself: 4 MiB. The pipeline's thread commits larger ones.
    static let loopCommitBytesMax = 4 << 20
    /// The size of live queries' messages after which an event loop serves other connections, in bytes: 4 MiB.
    static let loopLiveBytesMax = 4 << 20
    /// Bytes of memory that a subscribed name uses in addition to its own bytes.
    package static let subscriptionOverheadBytes = 128
    /// The size of keys after which one call of SCAN stops reading, in bytes: 16 MiB.
    package static let scanBytesMax = 16 << 20
    /// Bytes of memory that a key uses in addition to its own bytes while KEYS collects it.
    static let listedKeyOverheadBytes = 64
    /// The maximum number of commands that a connection runs before its event loop serves other connections.
    static let loopCommandsMax = 4096
    /// The maximum number of reads of up to 64 KiB by a connection before its event loop serves other connections.
    static let loopReadsMax = 4
    /// The maximum number of words of a command on an event loop. Longer commands run on a thread that may block.
    static let loopArgumentsMax = 4096
    /// The length limit for the names of a connection, its library and the library's version, in bytes.
    static let clientNameBytesMax = 256

    package init() {}
}

extension QueryLimits {
    init(_ limits: Limits) {
        self.init()
        (scannedMax, milliseconds) = (limits.queryScanMax, limits.queryMilliseconds)
        rowBytesMax = limits.replyBytesMax
    }
}

extension CommandError {
    static func tooLongReply(_ limits: Limits) -> CommandError {
        CommandError("ERR the values exceed \(limits.replyBytesMax) bytes, the limit for one reply (--max-reply)")
    }
}

/// Settings that CONFIG SET can change while the daemon runs. Other objects store further settings. Thread-safe.
final class Settings: Sendable {
    /// The limit for the number of open connections. ``ServerState/clientsMax`` may be lower.
    let clientsMax: Atomic<Int>
    /// How long a connection may send no request before it is closed, in seconds; 0 for no limit.
    let idleSeconds: Atomic<Int>
    /// The limits of a subscriber's unread messages: see ``Setting/outputLimits(_:)``.
    let subscriberBytesMax: Atomic<Int>
    let subscriberBytesSoft: Atomic<Int>
    let subscriberSoftSeconds: Atomic<Int>
    /// The maximum size of the unread output of all clients together, in bytes; 0 for no limit.
    let outputBytesMax: Atomic<Int>
    private let passwordFile: Locked<(password: [UInt8]?, path: String)>

    init(limits: Limits, password: [UInt8]? = nil, passwordPath: String = "") {
        passwordFile = Locked((password, passwordPath))
        idleSeconds = Atomic(limits.idleSeconds)
        clientsMax = Atomic(limits.clientsMax)
        outputBytesMax = Atomic(limits.outputBytesMax)
        subscriberBytesMax = Atomic(limits.subscriberBytesMax)
        subscriberBytesSoft = Atomic(limits.subscriberBytesSoft)
        subscriberSoftSeconds = Atomic(Int(limits.subscriberSoftMilliseconds / 1000))
    }

    /// The password for AUTH; nil for none.
    var password: [UInt8]? { passwordFile.withLock { $0.password } }
    /// The path of the file that contains the password; empty for none.
    var passwordPath: String { passwordFile.withLock { $0.path } }

    /// Changes the password. Authenticated connections stay authenticated.
    func change(password: [UInt8]?, path: String) { passwordFile.withLock { $0 = (password, path) } }

    func changeSubscriberLimit(_ limits: Limits) {
        subscriberBytesMax.store(limits.subscriberBytesMax, ordering: .relaxed)
        subscriberBytesSoft.store(limits.subscriberBytesSoft, ordering: .relaxed)
        subscriberSoftSeconds.store(Int(limits.subscriberSoftMilliseconds / 1000), ordering: .relaxed)
    }
}
