// System calls that change the journal's files; a test can let each of them fail.

import LarderPlatform

/// A call before it is made.
enum JournalCall: Hashable, Sendable {
    case create
    case rename
    case write(Int)
    case fsync
    case ftruncate(Int)
    case unlink
    case fsyncDirectory
    /// Of a segment before it is read.
    case open
}

/// What a test wants instead of a call.
enum JournalFault: Hashable, Sendable {
    /// The call fails with this errno, and does nothing.
    case fail(Int32)
    /// A write takes only so many bytes.
    case shorten(Int)
}

/// For tests: gets each call before it is made, with its path; nil lets it happen. Called from every thread that uses
/// the journal.
struct JournalFaults: Sendable {
    let answer: @Sendable (_ call: JournalCall, _ path: String) -> JournalFault?
}
