import Synchronization

/// Why a script ended without a reply.
enum ScriptEnding: Int32 {
    /// The attempt is given up: the transaction's run says why.
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

/// With which other connections end a script. Thread-safe.
final class ScriptKillSwitch: Sendable {
    let isKilled = Atomic<Bool>(false)
}

/// A script that takes long, for those who ask. A value.
struct RunningScript: Sendable {
    /// Its name: the digest, or the function's.
    let name: String
    let isFunction: Bool
    /// The call, shortened.
    let words: [[UInt8]]
    /// When it began, in nanoseconds of the monotonic clock.
    let begin: Int64
}
