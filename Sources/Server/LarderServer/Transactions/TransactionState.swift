import LarderEngine

/// The state of MULTI, WATCH and EXEC on one connection: the queued commands, the watched keys, and the running
/// transaction.
///
/// A value type, owned by its session.
struct TransactionState {
    /// The commands queued since MULTI.
    var queue: TransactionQueue?
    /// The transaction started by EXEC.
    var execution: Execution?
    var watches: [KeyWatch] = []

    mutating func unwatch() {
        for watch in watches { watch.end() }
        watches = []
    }

    /// Discards the queued commands and the watched keys.
    mutating func discard() {
        queue = nil
        unwatch()
    }
}

/// The commands between MULTI and EXEC.
struct TransactionQueue {
    private(set) var commands: [QueuedCommand] = []
    private(set) var byteCount = 0
    /// Whether a command could not be queued, so that EXEC will fail.
    var isAborted = false
    /// The database selected by the last SELECT; nil before the first.
    private(set) var selection: String?

    mutating func add(_ command: QueuedCommand) {
        if command.row.database.isSelection, command.count > 1 { selection = command.text(1) }
        commands.append(command)
        byteCount += command.byteCount
    }
}
