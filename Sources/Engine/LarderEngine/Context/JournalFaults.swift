// System calls that change the journal's files; a test can let each of them fail.

import LarderPlatform

/// A system call on the journal's files that a test can make fail.
enum JournalCall: Hashable, Sendable {
    case create
    case rename
    case write(Int)
    case fsync
    case ftruncate(Int)
    case unlink
    case fsyncDirectory
    /// Opens a segment before it is read.
    case open
}

/// The fault that a test injects into a call.
enum JournalFault: Hashable, Sendable {
    /// The call fails with this errno, and does nothing.
    case fail(Int32)
    /// A write takes only this many bytes.
    case shorten(Int)
}

/// For tests: makes system calls of the journal fail. Before each call, `answer` is called with the path of the call's
/// file. `answer` returns the fault, or nil to let the call proceed. It runs on every thread that uses the journal.
struct JournalFaults: Sendable {
    let answer: @Sendable (_ call: JournalCall, _ path: String) -> JournalFault?
}
