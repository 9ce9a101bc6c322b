import LarderRESP

extension Call {
    /// Has a reply come from elsewhere; meanwhile only this connection waits. The command runs again then, and must ask
    /// ``awaitedReply()`` before anything else.
    /// - Parameter begin: is given what takes the reply, once, on any thread.
    func awaitReply(
        _ begin: (_ reply: @escaping @Sendable (AwaitedReply.Reply) -> Void) throws(CommandError) -> Void
    ) throws(CommandError) -> Outcome {
        let awaited = AwaitedReply(wakeUp: session.wakeUp)
        session.awaited = awaited
        try begin { awaited.set($0) }
        return try awaitedReply() ?? .done
    }

    /// Replies with what has come from elsewhere, or waits for it; nil if nothing was begun. Any error ends the waiting.
    func awaitedReply() throws(CommandError) -> Outcome? {
        guard let awaited = session.awaited else { return nil }
        if let reply = awaited.value {
            session.awaited = nil
            session.replies.write(try reply.get())
            return .done
        }
        if session.isStopping { throw CommandError("ERR the daemon stops; what was asked for may have been done") }
        return .waits(until: session.clock.monotonic() + Self.wakeUpsMilliseconds)
    }

    /// A command that waits is woken; it looks for itself as rarely as this.
    private static let wakeUpsMilliseconds: Int64 = 60_000
}
