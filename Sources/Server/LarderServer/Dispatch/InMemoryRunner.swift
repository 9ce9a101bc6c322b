import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// Commands that need only entries in memory. They run without a ``Call``, a ``Key`` and memory allocations. If a plan
/// needs more, nothing is done, and ``Call/perform(_:)`` executes the plan.
///
/// Only for connections whose ``Prechecks`` allow all commands with keys, because nothing is checked here. Has no
/// state, so creating it costs nothing. Used only by the session's owner.
struct InMemoryRunner {
    let session: Session
    var server: ServerState { session.server }
    var accounting: CommandAccounting { session.accounting }
    private var replies: UnsafeMutablePointer<ReplyBuffer> { session.replyMemory }

    /// Plans the current command, and runs it if it needs only memory.
    /// - Parameter plan: set to the command's plan if the command must still run.
    /// - Returns: whether the command has run.
    @inline(__always)
    func run(now: Int64, _ plan: inout EntryPlan?) -> Bool {
        let (arguments, length) = (session.parserMemory.pointee.currentArguments(), replies.pointee.count)
        let bytes = arguments.byteCount
        guard let row = CommandTable.find(arguments[0], &session.commandMemory.pointee),
            row.accepts(argumentCount: arguments.count),
            arguments.count <= Limits.loopArgumentsMax, bytes <= Limits.loopBytesMax, !server.isCongested
        else { return false }
        if let planner = session.commandMemory.pointee.planner {
            let words = CallWords(source: .request(arguments), row: row, server: server, now: now)
            guard let made = try? planner(words) else { return false }
            guard perform(made, row, words) else {
                plan = made
                return false
            }
        } else {
            guard let source = ScriptSource(row), runScript(source, row, arguments, now) else { return false }
            accounting.untimed.pointee.workLeft -= 4
        }
        accounting.noteUntimed(row)
        noteWork(bytes: bytes + replies.pointee.count - length)
        return true
    }

    /// Subtracts the work of a command from ``UntimedCounts/workLeft``. At 0, the clock is read again.
    @inline(__always)
    private func noteWork(bytes: Int) { accounting.untimed.pointee.workLeft -= 1 + bytes >> 10 }

    /// Executes a plan if it needs only memory.
    /// - Returns: whether the reply was written. If not, nothing was done.
    @inline(__always)
    private func perform(_ plan: EntryPlan, _ row: CommandMetadata, _ words: CallWords) -> Bool {
        switch plan {
        case .store(let options) where options.isUnconditional && !server.notifier.needsPrevious:
            store(options, words)
        case .store(let options) where !options.isSimple: false
        case .apply, .store: change(plan, row, words)
        case .values: replyWithValues(words)
        case .fetch(let options): fetch(options, words)
        default: false
        }
    }

    /// Stores a value without looking at the existing entry.
    private func store(_ options: SetOptions, _ words: CallWords) -> Bool {
        guard let rule = options.rule(nil, session.database.rules, now: words.now) else { return false }
        let replies = replies
        return withUnsafePointer(to: words.bytes(1)) { key in
            withUnsafePointer(to: words.bytes(2)) { value in
                replyFromMemory { database, ticket in
                    let run = database.run(
                        UnsafeBufferPointer(start: key, count: 1), storing: UnsafeBufferPointer(start: value, count: 1),
                        rule: rule, now: words.now, origin: session.prechecks.setOrigin
                    ) { _, stored, _ in
                        ticket = stored
                        replies.pointee.raw("+OK\r\n")
                        return true
                    }
                    return run.count == 1
                }
            }
        }
    }

    private func change(_ plan: EntryPlan, _ row: CommandMetadata, _ words: CallWords) -> Bool {
        let entries = Update.take()
        defer { entries.giveBack() }
        guard entries.add(words.bytes(1)) else { return false }
        entries.origin = WriteOrigin(tag: row.tag.rawValue, client: session.prechecks.setOrigin.client)
        let replies = replies
        return replyFromMemory { database, ticket in
            database.withBatch(entries, now: words.now, ticket: &ticket) { entries in
                guard let answer = plan.perform(on: entries, words) else { return false }
                replies.pointee.reply(answer)
                return true
            }
        }
    }

    private func replyWithValues(_ words: CallWords) -> Bool {
        let count = words.count - 1
        for index in 1...count where words.bytes(index).count > Key.bytesMax { return false }
        return replyFromMemory { database, ticket in
            session.replyQueue.addValues(
                of: database, count, now: words.now, bytesMax: server.limits.replyBytesMax, &ticket,
                key: { words.bytes($0 + 1) }, seen: { _, _ in })
        }
    }

    /// Executes `FETCH` if the entry is fresh, in memory, and not yet due for a refresh.
    private func fetch(_ options: FetchWords, _ words: CallWords) -> Bool {
        let (key, replies) = (words.bytes(1), replies)
        guard key.count <= Key.bytesMax, session.waits.fetching.waiting == nil else { return false }
        return replyFromMemory { database, ticket in
            database.readInMemory(key, now: words.now, ticket: &ticket) { entry in
                guard entry.record.count < Limits.loopBytesMax, entry.answersFetch(maxAge: options.maxAge) else {
                    return false
                }
                replies.pointee.fetched(
                    .fresh, entry.payload, unless: options.version, storedAt: entry.header.storedAt,
                    deadline: entry.deadline, now: words.now)
                return true
            }
        }
    }

    /// Adds a reply to the reply queue, which sends it when the commits that it depends on have succeeded.
    /// - Parameter body: adds the reply, and sets the ticket to the last of these commits. Returns false to do nothing.
    @inline(__always)
    func replyFromMemory(_ body: (Database, inout CommitTicket) -> Bool) -> Bool {
        let start = session.replyQueue.position
        var ticket = CommitTicket.none
        guard session.prechecks.database._withUnsafeGuaranteedRef({ body($0, &ticket) }) else { return false }
        session.replyQueue.hold(from: start, ticket)
        return true
    }
}
