import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// Plans that are not a single read or write, and GETs in databases with an origin.
extension InMemoryRunner {
    /// Executes a plan if it needs only memory.
    /// - Returns: whether the reply was written. If not, nothing was done.
    @inline(__always)
    func perform(_ plan: EntryPlan, _ row: CommandMetadata, _ words: CallWords) -> Bool {
        switch plan {
        case .store(let options) where !options.isSimple: false
        case .apply, .store: change(plan, row, words)
        case .values: replyWithValues(words)
        case .facts(let index, .counted, let reply): replyWithFacts(index, words, reply)
        case .fetch(let options): fetch(options, words)
        default: false
        }
    }

    private func change(_ plan: EntryPlan, _ row: CommandMetadata, _ words: CallWords) -> Bool {
        let entries = Update.take()
        defer { entries.giveBack() }
        guard entries.add(words.bytes(1)) else { return false }
        entries.origin = WriteOrigin(tag: row.tag.rawValue, client: session.prechecks.setOrigin.client)
        let replies = session.replyMemory
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

    /// Replies with facts of a fresh entry. A reply that is an error is left to ``Call/perform(_:)``.
    private func replyWithFacts(_ index: Int, _ words: CallWords, _ reply: EntryPlan.FactsReply) -> Bool {
        let replies = session.replyMemory
        return replyFromMemory { database, ticket in
            database.readInMemory(words.bytes(index), now: words.now, ticket: &ticket) { entry in
                let facts = EntryFacts(header: entry.header, payloadCount: entry.payload.count)
                return (try? reply(facts, entry.rules, &replies.pointee)) != nil
            }
        }
    }

    /// Executes `FETCH` if the entry is fresh, in memory, and not yet due for a refresh.
    private func fetch(_ options: FetchWords, _ words: CallWords) -> Bool {
        let (key, replies) = (words.bytes(1), session.replyMemory)
        guard key.count <= Key.bytesMax, session.waits.fetching.waiting == nil else { return false }
        return replyFromMemory { database, ticket in
            database.readInMemory(key, now: words.now, ticket: &ticket) { entry in
                guard entry.record.byteCount < Limits.loopBytesMax, entry.answersFetch(maxAge: options.maxAge) else {
                    return false
                }
                replies.pointee.fetched(
                    .fresh, entry.payload, unless: options.version, storedAt: entry.header.storedAt,
                    deadline: entry.deadline, now: words.now)
                return true
            }
        }
    }

    /// Adds a reply to the reply queue. The queue sends the reply after the commits on which the reply depends.
    /// - Parameter body: adds the reply, and sets the ticket to the last of these commits. Returns false to do nothing.
    @inline(__always)
    func replyFromMemory(_ body: (Database, inout CommitTicket) -> Bool) -> Bool {
        let start = session.replyQueue.position
        var ticket = CommitTicket.none
        guard session.prechecks.database._withUnsafeGuaranteedRef({ body($0, &ticket) }) else { return false }
        session.replyQueue.hold(from: start, ticket)
        return true
    }

    // MARK: Databases with an origin

    /// Replies to consecutive GETs in a database with an origin. Stops at an entry that is not current or not in
    /// memory. Then asks the origin for all remaining keys whose values are unknown.
    /// - Returns: the number of replies.
    func replyBehindOrigin(
        _ units: UnsafeMutableBufferPointer<EntryUnit>, _ planned: UnsafeMutableBufferPointer<Planned>, _ now: Int64,
        _ limit: Limit
    ) -> Int {
        guard let tier = session.origin.tier else { return 0 }
        // Read the clock once: all these requests together take only a few microseconds.
        let instant = MonotonicClock.nanoseconds()
        var index = 0
        requests: while index < units.count, session.replyMemory.pointee.count <= limit.outputBytesMax {
            switch tier.knowledge(units[index].key, now: now, instant: instant) {
            case .nothing, .pending: break requests
            case .absent:
                session.replyMemory.pointee.null()
                note(planned[index].row)
                index += 1
            case .kept:
                var end = index + 1
                while end < units.count, tier.knowledge(units[end].key, now: now, instant: instant) == .kept {
                    end += 1
                }
                let run = UnsafeMutableBufferPointer(rebasing: units[index..<end])
                // An entry may have been evicted meanwhile: `execute` then stops at its key.
                index += execute(run, planned[index...], now, limit, mustExist: true).count
                if index < end { break requests }
            }
        }
        if index < units.count { askAhead(units[index...], tier, now) }
        session.origin.aheadCount -= index
        return index
    }

    /// Asks the origin for the keys of the next GETs together. Otherwise each GET would wait for a reply in turn.
    private func askAhead(_ units: Slice<UnsafeMutableBufferPointer<EntryUnit>>, _ tier: OriginTier, _ now: Int64) {
        guard session.origin.aheadCount <= 0 else { return }
        session.origin.aheadCount = units.count
        let missing = Set(units.lazy.map(\.key).filter { tier.knowledge($0, now: now) == .nothing }.map { Array($0) })
        if missing.count > 1 { tier.ask(Array(missing), for: nil) }
    }
}
