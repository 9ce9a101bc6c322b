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
    /// Why ``run(outputBytesMax:)`` returned.
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
    private var held = HeldReplies()
    /// Bytes of replies that were taken away to be sent, since the beginning.
    private var sentBytes = 0
    private var isWaiting = false
    private(set) var isClosing = false
    /// A parsed command that has not run yet, because files had to be opened or commits had to catch up.
    private var hasCommand = false
    private var lastSpec: CommandSpec?

    private(set) var database: Database
    private(set) var view = ReadingView.current
    var name = ""
    var libraryName = ""
    var libraryVersion = ""

    package init(id: Int64, server: ServerState) {
        self.id = id
        self.server = server
        database = server.standardDatabase
        parser = RequestParser(limits: server.limits.requests)
    }

    // MARK: Running commands

    /// Runs the commands that are complete, until one of the reasons to pause.
    /// - Parameter outputBytesMax: no further command begins while more bytes of replies than these are not yet taken.
    func run(outputBytesMax: Int) -> Pause {
        while !isClosing, !isWaiting {
            if !hasCommand {
                if pendingOutput > outputBytesMax { return .outputFull }
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
            replies.error(error.bytes)
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

    /// The name and the first arguments, each cut as Redis cuts them.
    private func unknownCommand() -> CommandError {
        var arguments: [UInt8] = []
        for index in 1..<max(1, parser.argumentCount) where arguments.count < Self.shownBytesMax {
            let room = Self.shownBytesMax - arguments.count
            arguments += [UInt8(ascii: "'")] + shown(parser.argument(index), room) + Array("' ".utf8)
        }
        let name = shown(parser.argument(0), Self.shownBytesMax)
        return CommandError("ERR unknown command '", name, "', with args beginning with: ", arguments)
    }

    private static let shownBytesMax = 128

    /// What keeps a command from running on the loop now.
    private func obstacle(_ spec: CommandSpec) -> Pause? {
        let isWrite = spec.flags.contains(.write)
        guard isWrite || spec.flags.contains(.readonly), !spec.flags.contains(.wholeDatabase) else { return nil }
        if isWrite, server.engine.pipeline.isCongested { return .congested }
        if !isWrite, case .snapshot = view { return nil }
        // A database without files is created by what stores an entry, not by what would change one.
        let forWriting = isWrite && (spec.flags.contains(.creates) || database.exists)
        guard !database.isReady(forWriting: forWriting) else { return nil }
        isWaiting = true
        return .prepare(database, forWriting: forWriting)
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
                buffer.error(error.bytes)
                then = nil
            }
            reply = buffer.take()
        }
    }

    /// Takes the result of ``Pause/work(_:)``; then ``run(outputBytesMax:)`` goes on.
    func finish(_ result: WorkResult) {
        isWaiting = false
        result.then?(self)
        replies.raw(result.reply)
    }

    /// Takes the result of ``Pause/prepare(_:forWriting:)``; then ``run(outputBytesMax:)`` goes on with the same command.
    func finishPreparing(_ error: LarderError?) {
        isWaiting = false
        guard let error else { return }
        hasCommand = false
        replies.error(CommandError(error).bytes)
    }

    // MARK: Output

    /// Reply bytes that are not yet taken.
    var pendingOutput: Int { replies.count }

    /// Whether replies wait for a commit.
    var hasHeldReplies: Bool { !held.isEmpty }

    /// Holds the reply that begins at `start` until its ticket is decided.
    private func hold(from start: Int, _ ticket: CommitTicket) {
        guard ticket != .none else { return }
        let pipeline = server.engine.pipeline
        let end = sentBytes + replies.count
        guard pipeline.isDecided(ticket) else {
            // The decision reaches this loop after this command, and finds the reply held.
            return held.add(start: start, end: end, ticket)
        }
        guard let failure = pipeline.failure(of: ticket) else { return }
        var failed = HeldReplies()
        failed.add(start: start, end: end, ticket)
        failed.fail(ticket.sequence...ticket.sequence, CommandError(failure), in: &replies, sent: sentBytes)
    }

    /// How many bytes may be sent now: everything before the first held reply.
    var sendableCount: Int { held.firstStart.map { $0 - sentBytes } ?? replies.count }

    /// Forgets bytes at the front that were sent.
    func didSend(_ count: Int) {
        replies.removeFirst(count)
        sentBytes += count
    }

    /// `sequences` are decided now, and everything before them was: replies that waited for them become sendable, or
    /// errors.
    func commitsDecided(_ sequences: ClosedRange<UInt64>, failure: LarderError?) {
        if let failure { held.fail(sequences, CommandError(failure), in: &replies, sent: sentBytes) }
        held.release(upTo: sequences.upperBound)
    }

    /// Gives memory back that a connection at rest does not need.
    func reclaim() {
        parser.reclaim()
        replies.reclaim()
    }

    // MARK: What commands change

    func select(_ database: Database) { self.database = database }

    func see(_ view: ReadingView) { self.view = view }

    /// The snapshot to read from; nil for the database as it is.
    func snapshot() throws(CommandError) -> OpenSnapshot? {
        switch view {
        case .current: return nil
        case .snapshot(let open, _): return open
        case .expired:
            let seconds = server.limits.snapshotMilliseconds / 1000
            throw CommandError("ERR the snapshot was open for \(seconds) s and was closed: SNAPSHOT CLOSE goes on")
        }
    }

    /// Lets a snapshot go that was open for too long.
    func expireSnapshot(monotonic: Int64) {
        if case .snapshot(_, let until) = view, monotonic >= until { view = .expired }
    }

    /// The connection is gone.
    func end() {
        isClosing = true
        view = .current
    }

    /// A record's payload, or null.
    func reply(_ record: Record?) {
        guard let record else { return replies.null() }
        record.withPayload { replies.bulk($0) }
    }
}

/// At most `most` bytes of an argument for an error's text, and none from its first NUL on.
func shown(_ bytes: UnsafeRawBufferPointer, _ most: Int) -> [UInt8] {
    Array(bytes.prefix(most).prefix { $0 != 0 })
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
