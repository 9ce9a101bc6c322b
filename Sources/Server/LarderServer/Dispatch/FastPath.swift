import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// The fast path runs the most frequent commands in their usual form. It avoids the costs of their handlers: a `Call`,
/// a `Key` and a memory allocation. The replies are the same. If a command has an unusual form, needs the disk or
/// fails, the fast path changes nothing, and the handler runs the command.
extension Session {
    /// Tries to run the current command on the fast path.
    /// - Returns: false if nothing was done, so that the command's handler must run.
    @inline(__always)
    func runOnFastPath(now: Int64) -> Bool {
        let arguments = parserMemory.pointee.currentArguments()
        let count = arguments.count
        let word = ShortWord(arguments[0])
        switch word {
        case .set:
            guard count >= 3 else { return false }
            guard setOnFastPath(arguments, now) else { return runQuickly(word, arguments, now) }
            accounting.noteFast(.set)
            noteWork(bytes: arguments[2].count)
        case .mget:
            guard count >= 2, mgetOnFastPath(arguments, now) else { return false }
            accounting.noteFast(.mget)
            accounting.fastPath.pointee.workLeft = 0
        case .eval, .evalsha, .fcall:
            let source: ScriptSource = word == .evalsha ? .digest : word == .eval ? .text : .function
            guard count >= 3, scriptOnFastPath(arguments, source, now) else { return false }
            accounting.noteFast(source.row)
            accounting.fastPath.pointee.workLeft -= 4
        case .fetch:
            let length = replyMemory.pointee.count
            guard count >= 2, fetchOnFastPath(arguments, now) else { return false }
            accounting.noteFast(.fetch)
            noteWork(bytes: replyMemory.pointee.count - length)
        case .ping:
            guard count == 1 else { return false }
            replyMemory.pointee.raw("+PONG\r\n")
            accounting.noteFast(.ping)
            noteWork(bytes: 0)
        default: return runQuickly(word, arguments, now)
        }
        return true
    }

    /// Counts the work of a command against the limit after which the clock is read again.
    @inline(__always)
    func noteWork(bytes: Int) { accounting.fastPath.pointee.workLeft -= 1 + bytes >> 10 }

    /// Runs consecutive requests `GET key` in the usual form until one needs the disk or the origin, or has a long value.
    /// While it waits for the memory of the first entry, the processor already loads the memory of the other ones.
    /// - Returns: the number of requests that have run.
    func runGets(now: Int64, outputBytesMax: Int) -> Int {
        withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: Self.getsMax) { keys in
            withUnsafeTemporaryAllocation(of: Int.self, capacity: Self.getsMax) { ends in
                let count = parserMemory.pointee.usualGets(keys, ends)
                guard count > 0 else { return 0 }
                let run = UnsafeBufferPointer(rebasing: keys[..<count])
                let done =
                    takesOriginGets
                    ? replyBehindOrigin(run, now, outputBytesMax) : reply(to: run, now, outputBytesMax)
                if done > 0 { parserMemory.pointee.skip(ends[done - 1]) }
                return done
            }
        }
    }

    /// Replies to consecutive GETs of keys from memory.
    /// - Parameter mustExist: whether to stop at a key without a fresh entry, instead of replying with null.
    /// - Returns: the number of replies.
    func reply(
        to keys: UnsafeBufferPointer<UnsafeRawBufferPointer>, _ now: Int64, _ outputBytesMax: Int,
        mustExist: Bool = false
    ) -> Int {
        let replies = replyMemory
        let sent = replyQueue.sentBytes
        var stops = 0
        let done = fastDatabase._withUnsafeGuaranteedRef { database in
            database.readRun(keys, now: now) { _, ticket, payload in
                if mustExist, payload == nil {
                    stops = 1
                    return false
                }
                let start = sent + replies.pointee.count
                if let payload { replies.pointee.bulk(payload) } else { replies.pointee.null() }
                if ticket != .none { hold(from: start, ticket) }
                return replies.pointee.count <= outputBytesMax
            }
        }
        return done - stops
    }

    /// The most requests that ``runGets(now:outputBytesMax:)`` looks up at once.
    private static let getsMax = 64

    /// Adds a reply to the reply queue, which sends it when the commits that it depends on have succeeded.
    /// - Parameter body: adds the reply, and raises the ticket to cover these commits. Returns false if it did nothing.
    @inline(__always)
    func replyFromMemory(_ body: (Database, inout CommitTicket) -> Bool) -> Bool {
        let start = replyQueue.position
        var ticket = CommitTicket.none
        guard fastDatabase._withUnsafeGuaranteedRef({ body($0, &ticket) }) else { return false }
        hold(from: start, ticket)
        return true
    }

    private func mgetOnFastPath(_ arguments: RequestArguments, _ now: Int64) -> Bool {
        guard seesCurrent else { return false }
        let count = arguments.count - 1
        for index in 1...count where arguments[index].count > Key.bytesMax { return false }
        return replyFromMemory { database, ticket in
            replyWithValuesInMemory(database, count, now, &ticket, key: { arguments[$0 + 1] }, seen: { _, _ in })
        }
    }

    /// Runs `FETCH` if the entry is fresh, in memory, and not yet due for a refresh.
    private func fetchOnFastPath(_ arguments: RequestArguments, _ now: Int64) -> Bool {
        let (key, replies) = (arguments[1], replyMemory)
        guard seesCurrent, key.count <= Key.bytesMax, fetching.waiting == nil,
            let options = try? FetchWords(arguments)
        else { return false }
        return replyFromMemory { database, ticket in
            database.readInMemory(key, now: now, ticket: &ticket) {
                replies.pointee.fetched($0, options, now: now)
            }
        }
    }

    /// Runs `SET key value`, without options or with `EX seconds` or `PX milliseconds`.
    private func setOnFastPath(_ arguments: RequestArguments, _ now: Int64) -> Bool {
        let key = arguments[1]
        let value = arguments[2]
        guard key.count <= Key.bytesMax, value.count <= Limits.loopBytesMax, !server.isCongested,
            !server.notifier.needsPrevious
        else { return false }
        var rule = DeadlineRule.governed
        if arguments.count > 3 {
            guard let deadline = fastPathDeadline(arguments, now) else { return false }
            rule = .own(deadline)
        }
        return replyFromMemory { database, ticket in
            // Throws without side effects if the files are not open, or the database accepts no writes.
            guard let stored = try? database.put(key, payload: value, rule: rule, now: now, origin: setOrigin) else {
                return false
            }
            ticket = stored
            replyMemory.pointee.raw("+OK\r\n")
            return true
        }
    }

    private func fastPathDeadline(_ arguments: RequestArguments, _ now: Int64) -> Int64? {
        guard arguments.count == 5 else { return nil }
        let word = ShortWord(arguments[3])
        guard word == .ex || word == .px, let value = parseInteger(arguments[4]), value > 0, value <= Int64.max / 2000
        else { return nil }
        return now + (word == .ex ? value * 1000 : value)
    }
}
