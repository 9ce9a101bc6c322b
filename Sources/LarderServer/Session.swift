import LarderEngine
import RESP

/// One connection's state, without its socket: bytes come in, commands run, reply bytes go out.
///
/// - Replies leave in the order of the requests.
/// - A reply that depends on what is not yet committed is held, and all that come after it wait behind it. When the
///   commit fails, the held replies that depend on it become errors.
/// - A command that may block is handed out as work; until its answer is here no further command runs.
///
/// Confined to one event loop (or one test). `@unchecked Sendable`, because deferred work hands the session back to its
/// loop as a value; nothing of it is touched by other threads.
package final class Session: @unchecked Sendable {
    /// Why ``run()`` returned.
    enum Pause {
        /// All complete commands have run.
        case needsInput
        /// Work for a thread that may block; ``finish(_:)`` takes its result.
        case work(DeferredWork)
        /// Files are to be opened, created or reopened for the current command; then ``finishPreparing(_:)``.
        case prepare(Database, forWriting: Bool)
        /// Too much waits to be committed; run again later.
        case congested
        /// Too many reply bytes are unread; run again when they are sent.
        case outputFull
        /// The connection ends once the replies are sent.
        case closing
    }

    package let id: Int64
    let server: ServerState
    package var parser: RequestParser
    var replies = ReplyBuffer()
    private var held: [HeldReply] = []
    private var heldFirst = 0
    /// Bytes of replies that were taken away to be sent, since the beginning.
    private var sentBytes = 0
    private var isExecuting = false
    private var isWaiting = false
    private(set) var isClosing = false
    /// A parsed command that has not run yet, because files had to be opened or commits had to catch up.
    private var hasCommand = false
    private var lastSpec: CommandSpec?

    private(set) var database: Database
    private(set) var snapshot: Snapshot?
    private var snapshotDeadline: Int64 = 0
    var name = ""
    var libraryName = ""
    var libraryVersion = ""

    /// Where a held reply stands, counted in bytes from the connection's beginning.
    private struct HeldReply {
        let start: Int
        let end: Int
        let ticket: CommitTicket
    }

    package init(id: Int64, server: ServerState) {
        self.id = id
        self.server = server
        database = server.standardDatabase
        parser = RequestParser(limits: server.limits.requests)
    }

    // MARK: Running commands

    /// Runs the commands that are complete, until one of the reasons to pause.
    func run() -> Pause {
        while !isClosing, !isWaiting {
            if !hasCommand {
                if pendingOutput > server.limits.outputBytesPause { return .outputFull }
                do throws(ProtocolError) {
                    guard try parser.next() else { return .needsInput }
                } catch {
                    // Where the stream is broken nothing more can be understood.
                    replies.error("ERR \(error.message)")
                    isClosing = true
                    return .closing
                }
                hasCommand = true
            }
            if let pause = runCommand() { return pause }
        }
        return isClosing ? .closing : .needsInput
    }

    /// Runs the parsed command, or says what has to happen first.
    private func runCommand() -> Pause? {
        let start = sentBytes + replies.count
        var call = Call(self, server, now: server.engine.now())
        do throws(CommandError) {
            let spec = try findCommand()
            if let pause = obstacle(spec) { return pause }
            hasCommand = false
            server.commandsProcessed.add()
            switch try spec.run(&call) {
            case .done: break
            case .close: isClosing = true
            case .deferred(let work):
                isWaiting = true
                return .work(work)
            }
        } catch {
            hasCommand = false
            replies.error(error.text)
        }
        hold(from: start, call.ticket)
        return nil
    }

    private func findCommand() throws(CommandError) -> CommandSpec {
        let name = parser.argument(0)
        let spec: CommandSpec
        if let lastSpec, equalsIgnoringCase(name, lowercase: lastSpec.name) {
            spec = lastSpec
        } else {
            guard let found = CommandTable.find(name) else { throw unknownCommand() }
            spec = found
            lastSpec = found
        }
        guard spec.accepts(argumentCount: parser.argumentCount) else { throw .arity(spec.name) }
        return spec
    }

    private func unknownCommand() -> CommandError {
        func shown(_ index: Int) -> String {
            String(decoding: parser.argument(index).prefix(128), as: UTF8.self)
        }
        var arguments = ""
        for index in 1..<max(1, parser.argumentCount) {
            guard arguments.utf8.count < 128 else { break }
            arguments += "'\(shown(index))' "
        }
        return CommandError("ERR unknown command '\(shown(0))', with args beginning with: \(arguments)")
    }

    /// What keeps a command from running on the loop now.
    private func obstacle(_ spec: CommandSpec) -> Pause? {
        let isWrite = spec.flags.contains(.write)
        guard isWrite || spec.flags.contains(.readonly), !spec.flags.contains(.wholeDatabase) else { return nil }
        if isWrite, server.engine.pipeline.isCongested { return .congested }
        if snapshot == nil || isWrite, !database.isReady(forWriting: isWrite) {
            isWaiting = true
            return .prepare(database, forWriting: isWrite)
        }
        return nil
    }

    // MARK: What comes back from other threads

    /// What deferred work came to.
    struct WorkResult: Sendable {
        let reply: [UInt8]
        let then: (@Sendable (Session) -> Void)?

        /// Runs work on the calling thread.
        init(_ work: DeferredWork, version: RESPVersion) {
            var buffer = ReplyBuffer(version: version)
            do throws(CommandError) {
                then = try work(&buffer)
            } catch {
                buffer.clear()
                buffer.error(error.text)
                then = nil
            }
            reply = buffer.take()
        }
    }

    /// Takes the result of ``Pause/work(_:)``; then ``run()`` goes on.
    func finish(_ result: WorkResult) {
        isWaiting = false
        result.then?(self)
        replies.raw(result.reply)
    }

    /// Takes the result of ``Pause/prepare(_:forWriting:)``; then ``run()`` goes on with the same command.
    func finishPreparing(_ error: LarderError?) {
        isWaiting = false
        guard let error else { return }
        hasCommand = false
        replies.error(CommandError(error).text)
    }

    /// Whether an answer from another thread is awaited.
    var isWaitingForWork: Bool { isWaiting }

    // MARK: Output

    /// Reply bytes that are not yet taken.
    var pendingOutput: Int { replies.count }

    /// Whether replies wait for a commit.
    var hasHeldReplies: Bool { heldFirst < held.count }

    /// Holds the reply that begins at `start` until its ticket is decided.
    private func hold(from start: Int, _ ticket: CommitTicket) {
        guard ticket != .none else { return }
        let pipeline = server.engine.pipeline
        held.append(HeldReply(start: start, end: sentBytes + replies.count, ticket: ticket))
        // Undecided now: the decision reaches this loop after this command, and finds the reply held.
        guard pipeline.isDecided(ticket) else { return }
        if let failure = pipeline.failure(of: ticket) {
            replaceReply(at: held.count - 1, with: CommandError(failure).text)
        }
        held.removeLast()
    }

    /// How many bytes may be sent now: everything before the first held reply.
    var sendableCount: Int {
        hasHeldReplies ? held[heldFirst].start - sentBytes : replies.count
    }

    /// Forgets bytes at the front that were sent.
    func didSend(_ count: Int) {
        replies.removeFirst(count)
        sentBytes += count
    }

    /// Everything up to `sequence` is decided: held replies become sendable, or errors.
    func commitsDecided(upTo sequence: UInt64, failure: LarderError?) {
        while hasHeldReplies, held[heldFirst].ticket.sequence <= sequence {
            if let failure { replaceReply(at: heldFirst, with: CommandError(failure).text) }
            heldFirst += 1
        }
        if heldFirst == held.count {
            held.removeAll(keepingCapacity: held.count < 4096)
            heldFirst = 0
        }
    }

    /// Puts an error in the place of a reply that was not sent yet, and moves what follows.
    private func replaceReply(at index: Int, with text: String) {
        let reply = held[index]
        var fresh = ReplyBuffer(version: replies.version)
        let bytes = replies.take()
        fresh.raw(Array(bytes[..<(reply.start - sentBytes)]))
        let before = fresh.count
        fresh.error(text)
        let shift = fresh.count - before - (reply.end - reply.start)
        fresh.raw(Array(bytes[(reply.end - sentBytes)...]))
        replies = fresh
        for later in (index + 1)..<max(index + 1, held.count) {
            held[later] = HeldReply(
                start: held[later].start + shift, end: held[later].end + shift, ticket: held[later].ticket)
        }
    }

    // MARK: What commands change

    func select(_ database: Database) { self.database = database }

    func install(snapshot: Snapshot?, deadline: Int64) {
        self.snapshot?.close()
        if self.snapshot != nil { server.openSnapshots.add(-1) }
        self.snapshot = snapshot
        snapshotDeadline = deadline
    }

    /// Closes a snapshot that was open for too long; its reads then answer with an error until it is closed.
    func expireSnapshot(monotonic: Int64) {
        guard let snapshot, monotonic >= snapshotDeadline else { return }
        snapshot.close()
    }

    /// Gives memory back that nothing needs now.
    func reclaim() {
        if !hasCommand, !isWaiting, parser.bufferedBytes == 0 { parser.reclaim() }
        if replies.isEmpty { replies.reclaim() }
    }

    /// The connection is gone.
    func end() {
        isClosing = true
        install(snapshot: nil, deadline: 0)
    }

    /// A record's payload, or null.
    func reply(_ record: Record?) {
        guard let record else { return replies.null() }
        record.withPayload { replies.bulk($0) }
    }
}

/// Whether `bytes` are `word` (given in lower case), in any case of ASCII letters.
private func equalsIgnoringCase(_ bytes: UnsafeRawBufferPointer, lowercase word: String) -> Bool {
    var word = word
    return word.withUTF8 { expected in
        guard bytes.count == expected.count else { return false }
        for index in 0..<bytes.count {
            let byte = bytes[index]
            let lower = byte >= 0x41 && byte <= 0x5A ? byte + 0x20 : byte
            if lower != expected[index] { return false }
        }
        return true
    }
}
