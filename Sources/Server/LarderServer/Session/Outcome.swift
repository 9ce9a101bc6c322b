import LarderRESP

/// How a handler left its command.
enum Outcome {
    /// The reply is written.
    case done
    /// The reply is written, and the connection is closed once it is sent.
    case close
    /// The reply comes from a thread that may block; nothing is written yet.
    case deferred(DeferredWork)
    /// Nothing is written, and the command runs again when it is woken, or at an instant of the monotonic clock. Only
    /// its own connection waits.
    case waits(until: Int64)
}

/// Runs on a worker and writes the reply.
/// - Returns: what the connection's loop has to do then, if anything.
typealias DeferredWork = @Sendable (inout ReplyBuffer) throws(CommandError) -> (@Sendable (Session) -> Void)?
