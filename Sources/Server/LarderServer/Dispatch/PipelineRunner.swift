import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// Runs consecutive GETs or SETs of a pipeline, and looks up their entries together.
///
/// This type has no state, so creating it costs nothing. Used only by the session's owner.
struct PipelineRunner {
    let session: Session
    private var server: ServerState { session.server }
    private var accounting: CommandAccounting { session.accounting }
    private var replies: UnsafeMutablePointer<ReplyBuffer> { session.replyMemory }

    /// Runs consecutive requests `GET key` or `SET key value` in the usual form. Stops before a request that needs the
    /// disk or the origin, or has a long value. The entries are looked up together, so that the processor loads their
    /// memory in parallel.
    /// - Parameters:
    ///   - most: the maximum number of requests to run.
    ///   - until: the time limit for reading the disk, in milliseconds of the monotonic clock; nil on a thread that
    ///     must not block.
    /// - Returns: the number of requests that have run, and whether the next one needs the disk.
    func run(
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
                    } else if session.prechecks.allowsOriginGets {
                        (replyBehindOrigin(run, now, outputBytesMax), false)
                    } else {
                        reply(to: run, now, outputBytesMax, until: until)
                    }
                if done.0 > 0 { session.parserMemory.pointee.skip(ends[done.0 - 1]) }
                return done
            }
        }
    }

    /// Whether consecutive SETs may run together. If not, do not parse ahead: each SET would parse the next SETs again.
    private var mayRunSets: Bool {
        session.prechecks.allowsAll && !server.isCongested && !server.notifier.needsPrevious
    }

    /// Stores the values of consecutive SETs.
    /// - Returns: the number of values that were stored.
    private func store(
        _ values: UnsafeBufferPointer<UnsafeRawBufferPointer>, _ keys: UnsafeBufferPointer<UnsafeRawBufferPointer>,
        _ now: Int64
    ) -> Int {
        let (replies, sent) = (replies, session.replyQueue.sentBytes)
        let run = session.prechecks.database._withUnsafeGuaranteedRef { database in
            database.run(keys, storing: values, now: now, origin: session.prechecks.setOrigin) { index, ticket, _ in
                let start = sent + replies.pointee.count
                replies.pointee.raw("+OK\r\n")
                session.replyQueue.hold(from: start, ticket)
                accounting.untimed.pointee.workLeft -= values[index].count >> 10
                return true
            }
        }
        accounting.noteUntimed(.set, run.count)
        return run.count
    }

    /// Replies to consecutive GETs from memory, and from the disk if `until` is set.
    /// - Parameter mustExist: whether to stop at a key without a fresh entry, instead of replying with null.
    /// - Returns: the number of replies, and whether the next key needs the disk.
    private func reply(
        to keys: UnsafeBufferPointer<UnsafeRawBufferPointer>, _ now: Int64, _ outputBytesMax: Int,
        mustExist: Bool = false, until: Int64? = nil
    ) -> (count: Int, needsDisk: Bool) {
        let (replies, sent) = (replies, session.replyQueue.sentBytes)
        var stops = 0
        let run = session.prechecks.database._withUnsafeGuaranteedRef { database in
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
        accounting.noteUntimed(.get, run.count - stops)
        guard run.needsDisk, let until else { return (run.count - stops, run.needsDisk) }
        var count = run.count
        while count < keys.count, replies.pointee.count <= outputBytesMax, session.clock.monotonic() < until {
            let (key, begin) = (keys[count], MonotonicClock.nanoseconds())
            // Reads of the disk take long, so each read has its own time.
            let now = session.clock.now()
            let start = session.replyQueue.position
            var ticket = CommitTicket.none
            // If the read fails, the planner of GET reads again, and replies with the error.
            let outcome = try? session.prechecks.database.takeUnretainedValue().read(
                key, now: now, .mayBlock, ticket: &ticket
            ) { header, record, _ in
                replies.pointee.bulk(header.payload(of: record))
            }
            guard let outcome else { break }
            if outcome == .miss { replies.pointee.null() }
            session.replyQueue.hold(from: start, ticket)
            let name: StaticString = "GET"
            accounting.note(.get, MonotonicClock.nanoseconds() - begin, false, 2) {
                $0 == 0 ? UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount) : key
            }
            count += 1
        }
        return (count, false)
    }

    /// The maximum number of requests that ``run(now:most:outputBytesMax:until:)`` looks up together.
    private static let runMax = 64

    /// Replies to consecutive GETs in a database with an origin. Stops at an entry that is not current or not in
    /// memory. Then requests the remaining keys whose values are unknown from the origin, all together.
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
                accounting.noteUntimed(.get)
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
}
