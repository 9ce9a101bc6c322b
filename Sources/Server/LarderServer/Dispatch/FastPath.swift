import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// The fast path runs the most frequent commands in their usual form. It avoids the costs of their handlers: a `Call`,
/// a `Key` and a memory allocation. The replies are the same. If a command has an unusual form, needs the disk or
/// fails, the fast path changes nothing, and the handler runs the command.
///
/// ``FastPathState`` decides which commands may use the fast path. This type has no state, so creating it costs
/// nothing. Used only by the session's owner.
struct FastPath {
    let session: Session
    var server: ServerState { session.server }
    var accounting: CommandAccounting { session.accounting }
    var replies: UnsafeMutablePointer<ReplyBuffer> { session.replyMemory }

    /// Tries to run the current command.
    /// - Returns: false if nothing was done, so that the command's handler must run.
    @inline(__always)
    func run(now: Int64) -> Bool {
        let arguments = session.parserMemory.pointee.currentArguments()
        let count = arguments.count
        let word = ShortWord(arguments[0])
        switch word {
        case .set:
            guard count >= 3 else { return false }
            guard set(arguments, now) else { return runQuickly(word, arguments, now) }
            accounting.noteFast(.set)
            noteWork(bytes: arguments[2].count)
        case .mget:
            guard count >= 2, mget(arguments, now) else { return false }
            accounting.noteFast(.mget)
            accounting.fastPath.pointee.workLeft = 0
        case .eval, .evalsha, .fcall:
            let source: ScriptSource = word == .evalsha ? .digest : word == .eval ? .text : .function
            guard count >= 3, runScript(arguments, source, now) else { return false }
            accounting.noteFast(source.row)
            accounting.fastPath.pointee.workLeft -= 4
        case .fetch:
            let length = replies.pointee.count
            guard count >= 2, fetch(arguments, now) else { return false }
            accounting.noteFast(.fetch)
            noteWork(bytes: replies.pointee.count - length)
        case .ping:
            guard count == 1 else { return false }
            replies.pointee.raw("+PONG\r\n")
            accounting.noteFast(.ping)
            noteWork(bytes: 0)
        default: return runQuickly(word, arguments, now)
        }
        return true
    }

    /// Counts the work of a command against the limit after which the clock is read again.
    @inline(__always)
    func noteWork(bytes: Int) { accounting.fastPath.pointee.workLeft -= 1 + bytes >> 10 }

    /// Runs consecutive requests `GET key`, or `SET key value`, in the usual form, until one needs the disk or the origin,
    /// or has a long value. Their entries are looked up together, so that the processor loads their memory in parallel.
    /// - Parameters:
    ///   - most: the most requests to run.
    ///   - until: on a thread that may block, when to stop reading the disk, in milliseconds of the monotonic clock;
    ///     otherwise nil.
    /// - Returns: the number of requests that have run, and whether the next one needs the disk.
    func runUsual(
        now: Int64, most: Int, outputBytesMax: Int, until: Int64?
    ) -> (count: Int, needsDisk: Bool) {
        withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: 2 * Self.runMax) { words in
            withUnsafeTemporaryAllocation(of: Int.self, capacity: Self.runMax) { ends in
                let keys = UnsafeMutableBufferPointer(rebasing: words[..<Self.runMax])
                let values = UnsafeMutableBufferPointer(rebasing: words[Self.runMax...])
                let (found, isSet) = session.parserMemory.pointee.usualRun(keys, values, ends, allowsSets: mayRunSets)
                let count = min(found, most)
                guard count > 0 else { return (0, false) }
                let run = UnsafeBufferPointer(rebasing: keys[..<count])
                let done =
                    if isSet {
                        (store(UnsafeBufferPointer(rebasing: values[..<count]), run, now), false)
                    } else if session.fastPath.takesOriginGets {
                        (replyBehindOrigin(run, now, outputBytesMax), false)
                    } else {
                        reply(to: run, now, outputBytesMax, until: until)
                    }
                if done.0 > 0 { session.parserMemory.pointee.skip(ends[done.0 - 1]) }
                return done
            }
        }
    }

    /// Whether SETs may run together. Checked before they are parsed: otherwise each SET would parse the next ones too.
    private var mayRunSets: Bool { session.fastPath.takesAll && mayStore }

    /// Whether values may be stored without waiting, and without reading the previous entries.
    private var mayStore: Bool { !server.isCongested && !server.notifier.needsPrevious }

    /// Stores the values of consecutive SETs.
    /// - Returns: the number of values that were stored.
    private func store(
        _ values: UnsafeBufferPointer<UnsafeRawBufferPointer>, _ keys: UnsafeBufferPointer<UnsafeRawBufferPointer>,
        _ now: Int64
    ) -> Int {
        let replies = session.replyMemory
        let sent = session.replyQueue.sentBytes
        let run = session.fastPath.database._withUnsafeGuaranteedRef { database in
            database.run(keys, storing: values, now: now, origin: session.fastPath.setOrigin) { index, ticket, _ in
                let start = sent + replies.pointee.count
                replies.pointee.raw("+OK\r\n")
                session.replyQueue.hold(from: start, ticket)
                accounting.fastPath.pointee.workLeft -= values[index].count >> 10
                return true
            }
        }
        accounting.noteFast(.set, run.count)
        return run.count
    }

    /// Replies to consecutive GETs from memory, and from the disk if `until` is set.
    /// - Parameter mustExist: whether to stop at a key without a fresh entry, instead of replying with null.
    /// - Returns: the number of replies, and whether the next key needs the disk.
    private func reply(
        to keys: UnsafeBufferPointer<UnsafeRawBufferPointer>, _ now: Int64, _ outputBytesMax: Int,
        mustExist: Bool = false, until: Int64? = nil
    ) -> (count: Int, needsDisk: Bool) {
        let replies = session.replyMemory
        let sent = session.replyQueue.sentBytes
        var stops = 0
        let run = session.fastPath.database._withUnsafeGuaranteedRef { database in
            database.run(keys, now: now) { _, ticket, payload in
                if mustExist, payload == nil {
                    stops = 1
                    return false
                }
                let start = sent + replies.pointee.count
                if let payload { replies.pointee.bulk(payload) } else { replies.pointee.null() }
                session.replyQueue.hold(from: start, ticket)
                return replies.pointee.count <= outputBytesMax
            }
        }
        accounting.noteFast(.get, run.count - stops)
        guard run.needsDisk, let until else { return (run.count - stops, run.needsDisk) }
        var count = run.count
        while count < keys.count, replies.pointee.count <= outputBytesMax, session.clock.monotonic() < until {
            let (key, begin) = (keys[count], MonotonicClock.nanoseconds())
            // Reads of the disk take long: each has its own time.
            let now = session.clock.now()
            let isDone = replyFromMemory { database, ticket in
                // If the read fails, the planner of GET reads again, and replies with the error.
                let outcome = try? database.read(key, now: now, .mayBlock, ticket: &ticket) { header, record, _ in
                    replies.pointee.bulk(header.payload(of: record))
                }
                if outcome == .miss { replies.pointee.null() }
                return outcome != nil
            }
            guard isDone else { break }
            let name: StaticString = "GET"
            accounting.note(.get, MonotonicClock.nanoseconds() - begin, false, 2) {
                $0 == 0 ? UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount) : key
            }
            count += 1
        }
        return (count, false)
    }

    /// The most requests that ``runUsual(now:most:outputBytesMax:until:)`` looks up at once.
    private static let runMax = 64

    /// Replies to consecutive GETs in a database with an origin, until an entry is not current or not in memory. Then
    /// requests the remaining keys that are unknown from the origin, all together.
    /// - Returns: the number of replies.
    private func replyBehindOrigin(
        _ keys: UnsafeBufferPointer<UnsafeRawBufferPointer>, _ now: Int64, _ outputBytesMax: Int
    ) -> Int {
        guard let tier = session.origin.tier else { return 0 }
        // Read the clock once: all these requests together take only a few microseconds.
        let instant = MonotonicClock.nanoseconds()
        var index = 0
        requests: while index < keys.count, replies.pointee.count <= outputBytesMax {
            switch tier.knowledge(keys[index], now: now, instant: instant) {
            case .nothing, .pending: break requests
            case .absent:
                replies.pointee.null()
                accounting.noteFast(.get)
                index += 1
            case .kept:
                var end = index + 1
                while end < keys.count, tier.knowledge(keys[end], now: now, instant: instant) == .kept { end += 1 }
                let run = UnsafeBufferPointer(rebasing: keys[index..<end])
                // An entry may have been evicted meanwhile: `reply` then stops at its key.
                index += reply(to: run, now, outputBytesMax, mustExist: true).count
                if index < end { break requests }
            }
        }
        if index < keys.count { askAhead(keys[index...], tier, now) }
        session.origin.aheadCount -= index
        return index
    }

    /// Requests the keys of the next GETs from the origin together. Otherwise each GET would wait for a reply in turn.
    private func askAhead(
        _ keys: Slice<UnsafeBufferPointer<UnsafeRawBufferPointer>>, _ tier: OriginTier, _ now: Int64
    ) {
        guard session.origin.aheadCount <= 0 else { return }
        session.origin.aheadCount = keys.count
        let missing = Set(keys.lazy.filter { tier.knowledge($0, now: now) == .nothing }.map { Array($0) })
        if missing.count > 1 { tier.ask(Array(missing)) { _, _ in } }
    }

    /// Adds a reply to the reply queue, which sends it when the commits that it depends on have succeeded.
    /// - Parameter body: adds the reply, and sets the ticket to the last of these commits. Returns false to do nothing.
    @inline(__always)
    func replyFromMemory(_ body: (Database, inout CommitTicket) -> Bool) -> Bool {
        let start = session.replyQueue.position
        var ticket = CommitTicket.none
        guard session.fastPath.database._withUnsafeGuaranteedRef({ body($0, &ticket) }) else { return false }
        session.replyQueue.hold(from: start, ticket)
        return true
    }

    private func mget(_ arguments: RequestArguments, _ now: Int64) -> Bool {
        let count = arguments.count - 1
        for index in 1...count where arguments[index].count > Key.bytesMax { return false }
        return replyFromMemory { database, ticket in
            session.replyQueue.addValues(
                of: database, count, now: now, bytesMax: server.limits.replyBytesMax, &ticket,
                key: { arguments[$0 + 1] }, seen: { _, _ in })
        }
    }

    /// Runs `FETCH` if the entry is fresh, in memory, and not yet due for a refresh.
    private func fetch(_ arguments: RequestArguments, _ now: Int64) -> Bool {
        let (key, replies) = (arguments[1], session.replyMemory)
        let words = RequestWords(arguments: arguments, now: now, clock: .passUnretained(session.clock))
        guard key.count <= Key.bytesMax, session.waits.fetching.waiting == nil, let options = try? FetchWords(words)
        else { return false }
        return replyFromMemory { database, ticket in
            database.readInMemory(key, now: now, ticket: &ticket) { entry in
                guard entry.record.count < Limits.loopBytesMax, entry.answersFetch(maxAge: options.maxAge) else {
                    return false
                }
                replies.pointee.fetched(
                    .fresh, entry.payload, unless: options.version, storedAt: entry.header.storedAt,
                    deadline: entry.deadline, now: now)
                return true
            }
        }
    }

    /// Runs `SET key value`, without options or with `EX seconds` or `PX milliseconds`.
    private func set(_ arguments: RequestArguments, _ now: Int64) -> Bool {
        var rule = DeadlineRule.governed
        if arguments.count > 3 {
            guard let deadline = ownDeadline(arguments, now) else { return false }
            rule = .own(deadline)
        }
        let (key, value) = (arguments[1], arguments[2])
        guard key.count <= Key.bytesMax, value.count <= Limits.loopBytesMax, mayStore else { return false }
        return replyFromMemory { database, ticket in
            // Returns nil if the files are not open, and throws if the database accepts no writes. Has no effect then.
            let origin = session.fastPath.setOrigin
            guard let stored = try? database.put(key, payload: value, rule: rule, now: now, origin: origin) else {
                return false
            }
            ticket = stored
            replies.pointee.raw("+OK\r\n")
            return true
        }
    }

    private func ownDeadline(_ arguments: RequestArguments, _ now: Int64) -> Int64? {
        guard arguments.count == 5 else { return nil }
        let word = ShortWord(arguments[3])
        guard word == .ex || word == .px, let value = parseInteger(arguments[4]), value > 0, value <= Int64.max / 2000
        else { return nil }
        return now + (word == .ex ? value * 1000 : value)
    }

    // MARK: Commands that change one entry

    /// The most words that such a command may have.
    private static let quickWordsMax = 6

    /// Tries to run the current command if it is one of ``QuickCommands``, such as counters, locks, deadlines and
    /// removals.
    /// - Parameter word: the command's name.
    /// - Returns: false if nothing was done, for example because the command needs the disk.
    private func runQuickly(_ word: ShortWord, _ arguments: RequestArguments, _ now: Int64) -> Bool {
        guard arguments.count >= 2, arguments.count <= Self.quickWordsMax, word != .get,
            let row = QuickCommands.row(word), !server.isCongested
        else { return false }
        let quick = QuickCommands(entries: .take())
        defer { quick.entries.giveBack() }
        guard quick.add(arguments[1]) else { return false }
        quick.entries.origin.client = session.id
        let replies = session.replyMemory
        let words = RequestWords(arguments: arguments, now: now, clock: .passUnretained(session.clock))
        let isDone = replyFromMemory { database, ticket in
            database.withBatch(quick.entries, now: now, ticket: &ticket) { _ in
                var answer = larder_script_answer()
                guard quick.call(word, row, words, &answer) else { return false }
                replies.pointee.reply(answer)
                return true
            }
        }
        guard isDone else { return false }
        accounting.noteFast(row)
        noteWork(bytes: arguments.count > 2 ? arguments[2].count : 0)
        return true
    }
}
