import LarderRESP

/// The state of a command after its handler has returned.
enum Outcome {
    /// The reply is written.
    case done
    /// The reply is written, and the connection is closed once it is sent.
    case close
    /// The reply will be written by a thread that may block; nothing is written yet.
    case deferred(DeferredWork)
    /// Nothing is written. The command runs again when it is woken, or at this time of the monotonic clock. Meanwhile,
    /// other connections are served.
    case waits(until: Int64)
}

/// Runs on a worker and writes the reply.
/// - Returns: a function for the connection's loop to call afterwards, or nil.
typealias DeferredWork = @Sendable (inout ReplyBuffer) throws(CommandError) -> (@Sendable (Session) -> Void)?
