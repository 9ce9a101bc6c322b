import Synchronization

/// Why a script stopped without a reply.
enum ScriptEnding: Int32 {
    /// The attempt was abandoned; the transaction's run contains the reason.
    case abandoned = 1
    case killed, timedOut, tooMuch, tooLongInTransaction
}

/// How long a script may hold locks, in nanoseconds.
enum ScriptSlice {
    /// On an event loop: 1 ms.
    static let onLoop: Int64 = 1_000_000
    /// On a thread that may block: 5 ms.
    static let blocking: Int64 = 5_000_000
}

/// Lets other connections kill a script. Thread-safe.
final class ScriptKillSwitch: Sendable {
    let isKilled = Atomic<Bool>(false)
}

/// A long-running script, as shown to other clients.
struct RunningScript: Sendable {
    /// The script's digest, or the function's name.
    let name: String
    let isFunction: Bool
    /// The call, shortened.
    let words: [[UInt8]]
    /// The start time, in nanoseconds of the monotonic clock.
    let begin: Int64
}
