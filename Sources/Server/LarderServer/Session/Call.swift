import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// A running command: its words, its time, and its reply.
///
/// Used only by the owner of the session, which is its event loop or another thread. A handler must throw its errors
/// before it writes its reply, so that each command has only one reply.
struct Call: CommandWords {
    let session: Session
    var words: CallWords
    /// Whether the command may wait for the disk, because it does not run on an event loop.
    let mayBlock: Bool
    /// The commit that must succeed before the reply is sent.
    var ticket = CommitTicket.none
    /// The transaction of the command; nil outside of transactions. In a transaction, do not call the engine, because
    /// the transaction already holds locks of the engine.
    let run: TransactionRun?
    /// Whether the command needed the disk on a thread that must not block. If so, it has had no effect, and runs again
    /// from the start on another thread.
    private(set) var isCold = false
    /// A key that must be read from the origin before the command can run. The command has had no effect yet, and runs
    /// again when the origin has replied.
    var missing: [UInt8]?
    /// Whether the last key that was read has a value at the origin that is not a string.
    var isOfOtherType = false
    /// Whether the command has read a stale value.
    var hasReadStale = false
    /// The hits and misses of the command that the statistics already contain.
    var counted = (hits: 0, misses: 0)

    init(_ session: Session, _ words: CallWords, mayBlock: Bool, run: TransactionRun? = nil) {
        (self.session, self.words, self.mayBlock, self.run) = (session, words, mayBlock, run)
    }

    init(
        _ session: Session, _ server: ServerState, now: Int64, mayBlock: Bool, command: QueuedCommand? = nil,
        run: TransactionRun? = nil
    ) {
        let words: CallWords
        if let command {
            words = CallWords(source: .queued(.passUnretained(command)), row: command.row, server: server, now: now)
        } else {
            let arguments = session.parserMemory.pointee.currentArguments()
            words = CallWords(source: .request(arguments), row: session.command.row, server: server, now: now)
        }
        self.init(session, words, mayBlock: mayBlock, run: run)
    }

    var server: ServerState { words.server }
    var now: Int64 { words.now }
    var count: Int { words.count }
    var name: String { words.name }
    var timeAhead: Int64 { words.timeAhead }
    var spec: CommandMetadata? { words.row }
    func bytes(_ index: Int) -> UnsafeRawBufferPointer { words.bytes(index) }

    mutating func depends(on other: CommitTicket) { if other > ticket { ticket = other } }

    // MARK: The database

    var database: Database { session.database }

    /// Returns the database with a name. Creates no files.
    func database(_ name: String) throws(CommandError) -> Database {
        if let run { return try run.database(name) }
        return try CommandError.wrap(server.engine.database(name))
    }

    /// The rules by which entries of the current database are fresh or stale.
    var rules: FreshnessRules { run?.rules(database) ?? database.rules }

    /// Whether the command belongs to a transaction, and therefore runs while the transaction's locks are held.
    var isInTransaction: Bool { run != nil }

    var access: Access { mayBlock ? .mayBlock : .memoryOnly }

    /// Returns the error that a command throws when it must wait for the disk. The error is not sent to the client: the
    /// command runs again on another thread.
    mutating func cold() -> CommandError {
        isCold = true
        return CommandError("ERR the entry is not in memory")
    }

    // MARK: The end of a command

    func ok() -> Outcome {
        session.replies.simple("OK")
        return .done
    }

    /// Replies with an error, and counts it.
    func fail(_ error: CommandError) {
        session.replies.error(error.bytes)
        server.errors.count(error.bytes)
    }

    func reply(_ number: some BinaryInteger) -> Outcome {
        session.replies.integer(Int64(number))
        return .done
    }

    /// Adds the command to the statistics, and to the slow log if it was slow.
    /// - Parameter begin: when the command began to run, in nanoseconds of the monotonic clock.
    func noteRun(_ row: CommandMetadata, since begin: Int64, failed: Bool) {
        session.accounting.note(row, MonotonicClock.nanoseconds() - begin, failed, count) { bytes($0) }
    }

    /// Sends the command to the clients that use MONITOR.
    func show(_ row: CommandMetadata) {
        // Administrative commands are not shown, as in Redis.
        guard !row.flags.contains(.admin), !session.record.isUnlogged.load(ordering: .relaxed) else { return }
        let secrets = row.secretRange(count) { bytes($0) }
        let line = Monitors.line(
            now: now, database: database.name, address: "unix:\(server.socketPath)", count: count
        ) { secrets.contains($0) ? CommandMetadata.redacted : bytes($0) }
        if let run { run.shown.append(line) } else { server.monitors.show(line, except: session.unseenLines) }
    }

    // MARK: Waiting

    /// Makes the command wait for a reply from another thread. Other connections are served meanwhile. When the reply
    /// is set, the command runs again, and must then call ``awaitedReply()`` first.
    /// - Parameter begin: starts the work. Its parameter is the function that sets the reply; call it once, on any
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
