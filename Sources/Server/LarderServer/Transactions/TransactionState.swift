import LarderCommandCatalog
import LarderEngine

/// The transactions of a connection: queued commands (MULTI), watched keys (WATCH), and the running transaction.
///
/// A value type, owned by its session.
struct TransactionState {
    /// The commands that were queued since MULTI; nil if there was no MULTI.
    var queue: TransactionQueue?
    /// The running transaction, which EXEC or a script has begun; nil if there is none.
    var execution: Execution?
    private(set) var watches: [KeyWatch] = []
    /// The approximate size of ``watches`` in memory, in bytes.
    private(set) var watchedBytes = 0

    /// Whether there is neither a MULTI nor a running transaction.
    var isIdle: Bool { queue == nil && execution == nil }

    // MARK: MULTI and EXEC

    /// Adds a command to the queue. Throws if transactions do not allow the command, if one of its keys is too long, or
    /// if the transaction would be too long.
    /// - Parameter word: returns the bytes of one of the command's words.
    mutating func enqueue(
        _ row: CommandMetadata, count: Int, bytesMax: Int, _ word: (Int) -> UnsafeRawBufferPointer
    ) throws(CommandError) {
        guard !row.flags.contains(.noMulti) else { throw CommandError("ERR Command not allowed inside a transaction") }
        // Refuse a key that is too long now: in EXEC, the other commands of the transaction would already be applied.
        try row.checkKeys(row.keyIndices(count: count, word), word)
        let room = bytesMax - (queue?.byteCount ?? 0)
        guard let command = QueuedCommand(row, count: count, bytesMax: room, word: word) else {
            throw CommandError("ERR the transaction is longer than \(bytesMax) bytes (--max-transaction)")
        }
        queue?.add(command)
    }

    /// Makes the queued commands the running transaction. Throws if there is no MULTI, or a command was refused.
    mutating func execute() throws(CommandError) {
        guard let queue else { throw CommandError("ERR EXEC without MULTI") }
        if queue.isAborted {
            discard()
            throw CommandError("EXECABORT Transaction discarded because of previous errors.")
        }
        execution = Execution(queue.commands, watches: watches)
        // From here on, the execution owns the watches, and will end them.
        (watches, watchedBytes) = ([], 0)
        self.queue = nil
    }

    /// Makes a script outside of MULTI the running transaction. Throws if the script's call is too long.
    mutating func execute(
        _ script: ScriptCall, _ row: CommandMetadata, count: Int, bytesMax: Int,
        _ word: (Int) -> UnsafeRawBufferPointer
    ) throws(CommandError) {
        guard let command = QueuedCommand(row, count: count, bytesMax: bytesMax, word: word) else {
            throw CommandError(
                "ERR the script and its arguments are longer than \(bytesMax) bytes (--max-transaction)")
        }
        execution = Execution([command], script: script)
    }

    // MARK: WATCH

    /// Watches the given keys of a database, except for keys that the connection watches already.
    /// - Returns: false if the disk must be read, but this thread must not block. No key is watched then.
    mutating func watch(
        _ keys: [Key], in database: Database, now: Int64, _ access: Access
    ) throws(LarderError) -> Bool {
        var fresh: [Key] = []
        var seen = Set(watches.filter { $0.database === database }.map(\.key))
        for key in keys where seen.insert(key).inserted { fresh.append(key) }
        guard let begun = try KeyWatch.begin(fresh, in: database, now: now, access) else { return false }
        watches += begun
        watchedBytes += begun.reduce(0) { $0 + $1.byteCount }
        return true
    }

    func note(in record: ClientRecord) {
        record.queuedCommands.store(queue?.commands.count ?? -1, ordering: .relaxed)
        record.queuedBytes.store(queue?.byteCount ?? 0, ordering: .relaxed)
        record.watchedKeys.store(watches.count, ordering: .relaxed)
        record.watchedBytes.store(watchedBytes, ordering: .relaxed)
    }

    mutating func unwatch() {
        for watch in watches { watch.end() }
        (watches, watchedBytes) = ([], 0)
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
