// The calls to the operating system that change the journal's files, each of which a test can let fail.

/// A call that is about to be made.
enum JournalCall: Hashable, Sendable {
    case create
    case rename
    case write(Int)
    case fsync
    case ftruncate(Int)
    case unlink
    case fsyncDirectory
    /// Of a segment that is about to be read.
    case open
}

/// What a test wants to happen in place of a call.
enum JournalFault: Hashable, Sendable {
    /// The call fails with this errno, and does nothing.
    case fail(Int32)
    /// A write takes only so many bytes.
    case shorten(Int)
}

/// For tests: told of each call before it is made, and of its path; nil lets it happen. Called from every thread that
/// uses the journal.
struct JournalFaults: Sendable {
    let answer: @Sendable (_ call: JournalCall, _ path: String) -> JournalFault?
}
