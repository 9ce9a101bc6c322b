import Synchronization

/// Why a script was stopped before it replied.
enum ScriptEnding: Int32 {
    /// The attempt was abandoned, and the script may start again. The ``TransactionRun`` has the reason.
    case abandoned = 1
    case killed, timedOut, tooMuch, tooLongInTransaction
}

/// How long a script may run with locks held, in nanoseconds.
enum ScriptSlice {
    /// On an event loop: 1 ms.
    static let onLoop: Int64 = 1_000_000
    /// On a thread that may block: 5 ms.
    static let blocking: Int64 = 5_000_000
}

/// A switch with which other connections can kill a script. Thread-safe.
final class ScriptKillSwitch: Sendable {
    let isKilled = Atomic<Bool>(false)
}

/// The description of a script that is running for a long time, for other clients.
struct RunningScript: Sendable {
    /// The digest of the script, or the name of the function.
    let name: String
    let isFunction: Bool
    /// The words of the call. Their number and lengths are limited.
    let words: [[UInt8]]
    /// When the script was called, in nanoseconds of the monotonic clock.
    let begin: Int64
}
