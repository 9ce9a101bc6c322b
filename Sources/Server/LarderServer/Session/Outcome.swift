import LarderRESP

/// The state of a command after its handler has returned.
enum Outcome {
    /// The reply is written.
    case done
    /// The reply is written, and the connection must be closed after it is sent.
    case close
    /// Nothing is written yet. A thread that may block must run this work, which writes the reply.
    case deferred(DeferredWork)
    /// Nothing is written. The command runs again when it is woken, and at this time of the monotonic clock (in
    /// milliseconds) at the latest. Meanwhile, other connections are served.
    case waits(until: Int64)
}

/// Work that runs on a thread that may block, and writes the command's reply.
/// - Returns: a function that the connection's loop calls afterwards; nil if there is nothing more to do.
typealias DeferredWork = @Sendable (inout ReplyBuffer) throws(CommandError) -> (@Sendable (Session) -> Void)?
