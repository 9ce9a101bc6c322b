import LarderRESP

extension Call {
    /// Makes the command wait for a reply from another thread. Other connections are served meanwhile. The command then
    /// runs again, and must call ``awaitedReply()`` first.
    /// - Parameter begin: starts the work. It gets the function that sets the reply; call that function once, on any
    ///   thread.
    func awaitReply(
        _ begin: (_ reply: @escaping @Sendable (Result<RESPValue, CommandError>) -> Void) throws(CommandError) -> Void
    ) throws(CommandError) -> Outcome {
        let awaited = Awaited<Result<RESPValue, CommandError>>(wakeUp: session.waits.wakeUp)
        session.waits.reply = awaited
        try begin { awaited.set($0) }
        return try awaitedReply() ?? .done
    }

    /// Sends the awaited reply if it has arrived; otherwise the command continues to wait. Throws if the reply is an
    /// error.
    /// - Returns: nil if the command has not begun to wait.
    func awaitedReply() throws(CommandError) -> Outcome? {
        guard let awaited = session.waits.reply else { return nil }
        if let reply = awaited.value {
            session.waits.reply = nil
            session.replies.write(try reply.get())
            return .done
        }
        if session.isStopping {
            throw CommandError("ERR the daemon is shutting down; the command may or may not have been executed")
        }
        return .waits(until: session.clock.monotonic() + Self.wakeUpsMilliseconds)
    }

    /// A waiting command runs again after this time even if no other thread has woken it.
    private static let wakeUpsMilliseconds: Int64 = 60_000
}
