import LarderEngine
import RESP

/// The daemon's limits, each with its default.
package struct Limits: Sendable {
    /// Connections at a time (`--max-clients`).
    package var clientsMax = 10_000
    /// Bytes of replies that a client may leave unread before its further commands wait: 8 MiB.
    package var outputBytesPause = 8 << 20
    /// Bytes of requests that are taken from such a client before it is no longer read from: 64 MiB. Many clients send
    /// all their requests before they read the first reply.
    package var inputBytesPause = 64 << 20
    /// Bytes that the values of one MGET may have together (`--max-reply`): 512 MiB, as the longest value.
    package var replyBytesMax = 512 << 20
    /// Bytes that a value which a command builds may have: 512 MiB, as the longest word of a request.
    package var valueBytesMax = Record.payloadBytesMax
    /// How long a client may leave replies unread, without taking any, before it is disconnected, in milliseconds
    /// (`--reply-timeout`, in seconds): 1 minute.
    package var outputStallMilliseconds: Int64 = 60_000
    /// Bytes of messages that a subscriber may leave unread before it is disconnected (`--max-subscriber-output`): 32 MiB.
    package var subscriberBytesMax = 32 << 20
    /// Bytes of messages that a subscriber may leave unread for at most ``subscriberSoftMilliseconds``: a quarter of the
    /// former.
    package var subscriberBytesSoft: Int { subscriberBytesMax / 4 }
    /// How long a subscriber may have more unread than ``subscriberBytesSoft``, in milliseconds: 1 minute.
    package var subscriberSoftMilliseconds: Int64 = 60_000
    /// Bytes of messages that may wait for loops that are busy before publishers wait too: 64 MiB.
    package var undeliveredBytesMax = 64 << 20
    /// Keys that clients which track what they read may have read altogether (`--max-tracked-keys`).
    package var trackedKeysMax = 1_000_000
    /// Entries with a deadline of their own that are watched for notifications of their expiry (`--max-watched-deadlines`).
    package var watchedDeadlinesMax = 1_000_000
    /// Snapshots open at a time, of all connections.
    package var snapshotsMax = 64
    /// How long a snapshot may stay open, in milliseconds: 5 minutes. It pins files.
    package var snapshotMilliseconds: Int64 = 300_000
    /// Databases that are opened when the server starts; the others when they are used.
    package var databasesOpenedAtStart = 64
    /// Cursors of SCAN that are remembered.
    package var scanCursorsMax = 4096
    /// Threads that run commands which must read the disk.
    package var coldThreads = 4
    /// The most commands that a connection runs on such a thread before it goes back to its event loop.
    package var coldSliceCommands = 1024
    /// How long a connection runs commands on such a thread before it goes back, in milliseconds: no further command
    /// begins then.
    package var coldSliceMilliseconds: Int64 = 10
    /// Bytes that the commands between MULTI and EXEC may take (`--max-transaction`): 64 MiB for each connection.
    package var transactionBytesMax = 64 << 20
    /// Keys that one connection may watch (`--max-watched-keys`).
    package var watchedKeysMax = 10_000
    /// Bytes that the names of the channels and patterns which one connection listens to may take, and so the prefixes that
    /// it tracks (`--max-subscriptions`): 16 MiB each.
    package var subscriptionBytesMax = 16 << 20
    /// Whether DEBUG is there (`--enable-debug`).
    package var allowsDebug = false
    /// How long a stop waits for clients to take their replies, in milliseconds.
    package var stopMilliseconds: Int64 = 5_000
    /// Lengths of requests.
    package var requests = RESPLimits()

    /// The most entries one SCAN looks at.
    package static let scanCountMax = 1_000_000
    /// Bytes that a command may bring, build or go over many times on an event loop: 1 MiB. For more it goes to a thread that
    /// may block.
    static let loopBytesMax = 1 << 20
    /// Bytes of replies, from which requests that follow each other take a new time: 64 KiB.
    static let loopCopyBytesMax = 64 << 10
    /// Bytes that an event loop writes to the journal itself: 4 MiB. More is left to the pipeline's thread.
    static let loopCommitBytesMax = 4 << 20
    /// The memory of a subscribed name beyond its bytes.
    package static let subscriptionOverheadBytes = 128
    /// Bytes of keys, from which one SCAN looks at no more entries: 16 MiB.
    package static let scanBytesMax = 16 << 20
    /// What a key takes beside its bytes while KEYS gathers it.
    static let listedKeyOverheadBytes = 64
    /// Commands that a connection runs on its event loop in one go, before others have their turn.
    static let loopCommandsMax = 4096
    /// Reads of a connection, of 64 KiB each, before others have their turn.
    static let loopReadsMax = 4
    /// Words of a command that runs on an event loop. One with more goes to a thread that may block.
    static let loopArgumentsMax = 4096
    /// What an entry in memory takes beside its key and record, in bytes: see docs/internals/Memory.md.
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
