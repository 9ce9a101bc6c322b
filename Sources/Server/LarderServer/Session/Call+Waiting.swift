import LarderRESP

extension Call {
    /// Waits for a reply from another thread without blocking other connections. The command then runs again, and must
    /// call ``awaitedReply()`` first.
    /// - Parameter begin: receives the function that sets the reply; call that once, on any thread.
    func awaitReply(
        _ begin: (_ reply: @escaping @Sendable (AwaitedReply.Reply) -> Void) throws(CommandError) -> Void
    ) throws(CommandError) -> Outcome {
        let awaited = AwaitedReply(wakeUp: session.wakeUp)
        session.awaited = awaited
        try begin { awaited.set($0) }
        return try awaitedReply() ?? .done
    }

    /// Replies with the awaited reply, or continues to wait; nil if the command waits for no reply. An error ends the
    /// wait.
    func awaitedReply() throws(CommandError) -> Outcome? {
        guard let awaited = session.awaited else { return nil }
        if let reply = awaited.value {
            session.awaited = nil
            session.replies.write(try reply.get())
            return .done
        }
        if session.isStopping {
            throw CommandError("ERR the daemon is shutting down; the command may or may not have been executed")
        }
        return .waits(until: session.clock.monotonic() + Self.wakeUpsMilliseconds)
    }

    /// How often a waiting command checks by itself, in addition to being woken by others.
    private static let wakeUpsMilliseconds: Int64 = 60_000
}
