import LarderEngine

/// The transactions of a connection: queued commands (MULTI), watched keys (WATCH), and the running transaction.
///
/// A value type, owned by its session.
struct TransactionState {
    /// The commands that were queued since MULTI; nil if there was no MULTI.
    var queue: TransactionQueue?
    /// The running transaction, which EXEC or a script has begun; nil if there is none.
    var execution: Execution?
    var watches: [KeyWatch] = []

    mutating func unwatch() {
        for watch in watches { watch.end() }
        watches = []
    }

    /// Discards the queued commands, and ends all watches.
    mutating func discard() {
        queue = nil
        unwatch()
    }
}

/// The commands between MULTI and EXEC.
struct TransactionQueue {
    private(set) var commands: [QueuedCommand] = []
    private(set) var byteCount = 0
    /// Whether a command could not be queued. EXEC will then fail.
    var isAborted = false
    /// The name in the last SELECT among the commands; nil if there was no SELECT.
    private(set) var selection: String?

    mutating func add(_ command: QueuedCommand) {
        if command.row.database.isSelection, command.count > 1 { selection = command.text(1) }
        commands.append(command)
        byteCount += command.byteCount
    }
}
