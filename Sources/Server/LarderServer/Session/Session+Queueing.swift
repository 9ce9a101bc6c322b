import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// MULTI and WATCH of a session.
extension Session {
    // MARK: Queueing

    /// Adds the current command to the transaction instead of running it.
    func enqueue(_ spec: CommandMetadata) throws(CommandError) {
        guard !spec.flags.contains(.noMulti) else {
            throw CommandError("ERR Command not allowed inside a transaction")
        }
        let count = parser.argumentCount
        var bytes = 0
        for index in 0..<count { bytes += parser.argument(index).count }
        let size = QueuedCommand.byteCount(words: count, bytes: bytes)
        guard let queued = transactions.queue?.byteCount, size <= server.limits.transactionBytesMax - queued else {
            throw CommandError(
                "ERR the transaction is longer than \(server.limits.transactionBytesMax) bytes (--max-transaction)")
        }
        record.lastCommand.store(spec.number, ordering: .relaxed)
        transactions.queue?.add(QueuedCommand(spec, count: count) { parser.argument($0) })
        replies.raw("+QUEUED\r\n")
    }

    // MARK: Watching

    /// The number of keys that this connection watches.
    var watchCount: Int { transactions.watches.count }

    /// Watches the given keys of the current database, except for keys that the connection watches already.
    /// - Returns: false if nothing was watched, because the disk must be read, and `access` forbids that.
    func watch(_ keys: [Key], now: Int64, _ access: Access) throws(LarderError) -> Bool {
        var fresh: [Key] = []
        var seen = Set(transactions.watches.filter { $0.database === self.database }.map(\.key))
        for key in keys where seen.insert(key).inserted { fresh.append(key) }
        guard let begun = try KeyWatch.begin(fresh, in: database, now: now, access) else { return false }
        transactions.watches += begun
        return true
    }
}
