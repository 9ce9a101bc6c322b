import LarderVocabulary

/// The feed of a database, from which followers read its changes. The ``ChangeLog`` has the latest changes. To
/// followers that need earlier changes, the feed returns all entries.
///
/// The larder keeps no state for a follower: a position may be used on any connection and any number of times.
package struct DatabaseFeed {
    fileprivate let database: Database

    /// Returns the next step of the feed after a position: the changes since then, in the order of commits, and for
    /// each changed key its current entry. If the change log no longer has these changes, a full pass begins. The steps
    /// of a full pass return all entries in the order of their keys, and the changes made since the pass began.
    ///
    /// A follower keeps a copy of the database by applying the steps in order. If a step has a ``FeedStep/range``, the
    /// follower must also remove from its copy all keys in the range that are not in the step. May block.
    package func step(since position: FeedPosition, _ options: FeedOptions) throws(LarderError) -> FeedStep {
        try ForkGuard.check("follow")
        if database.isDeleted { throw database.deletedError("follow") }
        let begin = FeedStep(position: position, state: .current, time: database.now())
        var reader = FeedReader(database: database, options: options, step: begin)
        // Wait for the commits under way, so that the step includes everything that was applied before the step's time.
        database.pipeline.drain()
        try reader.read()
        return reader.step
    }

    /// Registers `waiter`, which is woken once, when there is a matching change after `place`.
    /// - Returns: false, without registering `waiter`, if there is such a change already, or if the database now has
    ///   another feed.
    package func wait(_ waiter: FeedWaiter, feed: UInt64, behind place: ChangePlace) -> Bool {
        database.context.changeLog.wait(waiter, in: database, feed: feed, behind: place)
    }

    /// Stops waiting for a change. Idempotent.
    package func stopWaiting(_ waiter: FeedWaiter) { database.context.changeLog.stopWaiting(waiter, in: database) }
}

extension Database {
    package var feed: DatabaseFeed { DatabaseFeed(database: self) }
}

/// Builds one step of a feed.
private struct FeedReader {
    let database: Database
    let options: FeedOptions
    var step: FeedStep

    private var log: ChangeLog { database.context.changeLog }

    /// Reads the changes, and the entries of a full pass, that follow the step's position. Moves the position.
    mutating func read() throws(LarderError) {
        switch step.position.start {
        case .beginning: try beginPass(.asked)
        case .end:
            let (feed, end) = beginFeed()
            step.position = FeedPosition(feed: feed, end)
        case .behind(let feed, let place):
            // The commit unit in a position without a feed ID may be later than the last recorded change. If so,
            // continue from that change.
            let present = log.end(of: database)
            let from = feed == nil ? present.map { min(place, $0.end) } ?? place : place
            let found = log.changes(
                of: database, feed: feed, behind: from, prefix: options.prefix, count: options.count)
            switch found {
            case .otherFeed: try beginPass(.otherFeed)
            case .forgotten: try beginPass(.forgotten)
            case .changes(let changes, let feed, let end, let hasMore):
                step.position = FeedPosition(feed: feed, end, step.position.pass)
                step.state = hasMore ? .changes : .current
                try add(changes)
                if step.position.pass != nil { try continuePass() }
            }
        }
    }

    private func beginFeed() -> (feed: UInt64, end: ChangePlace) {
        let begun = log.begin(database, behind: database.pipeline.lastDecided)
        if begun.isNew {
            // Write the new log to its files through the commit pipeline, so that this happens in the order of the
            // commits.
            _ = database.pipeline.enqueue(perform: { [log = self.log] in log.prepare() }, committed: { _ in })
            database.pipeline.drain()
        }
        return (begun.feed, begun.end)
    }

    // MARK: Changes

    /// Adds changes to the step, with the current entries of their keys. If an entry is newer than the change, a later
    /// change reports it again.
    private mutating func add(_ changes: [LoggedChange]) throws(LarderError) {
        var bytes = 0
        var ticket = CommitTicket.none
        for (index, change) in changes.enumerated() {
            let fed: FeedChange<FeedEntry>
            switch change.kind {
            case .purged: fed = .purged
            case .purgedPrefix(let prefix): fed = .purgedPrefix(prefix)
            case .purgedTags(let tags): fed = .purgedTags(tags)
            case .removed(let key):
                bytes += key.count
                if let record = try present(key, &ticket) {
                    bytes += record.payloadCount
                    fed = stored(key, record)
                } else {
                    fed = .removed(key: key)
                }
            }
            step.changes.append(FeedItem(change: fed, sequence: change.place.sequence, version: change.version))
            if bytes >= options.bytes, index + 1 < changes.count, case .behind(let feed?, _) = step.position.start {
                step.position = FeedPosition(feed: feed, change.place, step.position.pass)
                step.state = .changes
                break
            }
        }
        try database.pipeline.wait(for: ticket)
    }

    private func stored(_ key: [UInt8], _ record: Record) -> FeedChange<FeedEntry> {
        .stored(FeedEntry(key, record, database.rules))
    }

    /// Returns the entry of a key if it is fresh or stale, otherwise nil.
    private func present(_ key: [UInt8], _ ticket: inout CommitTicket) throws(LarderError) -> Record? {
        if !database.isReady(forWriting: false) { try database.prepare(forWriting: false) }
        var found: Record?
        let key = key.withUnsafeBytes { Key($0) }
        let read = try database.perform([key], .records, .mayBlock, now: step.time, fillCache: false) { update in
            found = update.freshOrStale(0)
        }
        if let read { ticket = max(ticket, read) }
        return found
    }

    // MARK: A full pass

    private mutating func beginPass(_ reason: FeedStep.Reason) throws(LarderError) {
        if reason != .asked { database.context.statistics.feedFallbacks.add() }
        // The feed reports the changes applied from now on. The full pass reads the results of earlier changes.
        let (feed, end) = beginFeed()
        step.position = FeedPosition(feed: feed, end, .notBegun)
        step.reason = reason
        try continuePass()
    }

    /// Adds the next part of a full pass to the step.
    private mutating func continuePass() throws(LarderError) {
        guard let pass = step.position.pass, case .behind(let feed?, let place) = step.position.start else { return }
        step.state = .scan
        let count = step.changes.count
        while true {
            do throws(LarderError) {
                // Read the end of the change log before the entries. Then the entries include every change up to this
                // place.
                let known = log.end(of: database)?.end ?? place
                let through = try addEntries(
                    after: pass.after, known, log.finishedPurge(of: database), place.sequence)
                step.range = FeedStep.Range(after: pass.after, through: through)
                step.position = FeedPosition(feed: feed, place, through.map { .through($0) })
                return
            } catch {
                // Start the part again if the database was purged or reopened in the meantime.
                guard error.code == .purged || error.code == .invalidated else { throw error }
                step.changes.removeLast(step.changes.count - count)
            }
        }
    }

    /// - Returns: the last key that was read; nil if there are no more keys.
    private mutating func addEntries(
        after: [UInt8]?, _ known: ChangePlace, _ purge: ChangeVersion?, _ sequence: UInt64
    ) throws(LarderError) -> [UInt8]? {
        guard let cursor = try database.cursor(options.enumeration(after: after)) else { return nil }
        defer { cursor.close() }
        return try cursor.list(options, now: step.time) { entry in
            var version = ChangeVersion(time: entry.record.header.storedAt)
            if let change = log.change(of: entry.key, in: database), change.place <= known {
                version = change.version
            } else if let purge {
                // The entry was stored after the purge, so its version must be later than that of the purge.
                version = max(version, purge.next)
            }
            step.changes.append(FeedItem(change: .stored(entry), sequence: sequence, version: version))
        }
    }
}

extension EntryCursor {
    /// The maximum number of expired or purged entries that one list skips before it ends.
    private static let goneMax = 100_000

    /// Passes the next fresh and stale entries to `body`, up to the limits of the options.
    /// - Returns: the last key that was read; nil if there are no more keys.
    package func list(_ options: FeedOptions, now: Int64, _ body: (FeedEntry) -> Void) throws(LarderError) -> [UInt8]? {
        let rules = database.rules
        var (count, bytes, gone) = (0, 0, 0)
        while try next() {
            let key = Array(try self.key().bytes)
            if rules.freshness(try header(), now: now) == .gone {
                gone += 1
                if gone >= Self.goneMax { return key }
                continue
            }
            let record = try record()
            body(FeedEntry(key, record, rules))
            count += 1
            bytes += key.count + record.payloadCount
            if count == options.count || bytes >= options.bytes { return key }
        }
        return nil
    }
}

/// The current entry of a key, with all that another larder needs to store the same entry.
package struct FeedEntry: Sendable {
    package let key: [UInt8]
    package let record: Record
    /// The header of the entry as reported to another larder.
    package let header: RecordHeader
    /// When the entry expires, in milliseconds since 1970; nil for never.
    package let deadline: Int64?

    init(_ key: [UInt8], _ record: Record, _ rules: FreshnessRules) {
        (self.key, self.record) = (key, record)
        (header, deadline) = (rules.leaving(record.header), rules.deadline(record.header))
    }
}

/// A change as the feed reports it to readers.
package struct FeedItem: Sendable {
    package let change: FeedChange<FeedEntry>
    /// The number of the commit unit of the change. For an entry of a full pass: the commit unit of the reader's
    /// position.
    package let sequence: UInt64
    package let version: ChangeVersion
}

/// The next changes after a position.
package struct FeedStep: Sendable {
    package enum State: String, Sendable {
        /// A full pass is under way. The step returns some of its entries, and changes made since the pass began.
        case scan
        /// The step returns changes, and there are more.
        case changes
        /// There are no more changes for now.
        case current
    }

    /// Why a full pass begins.
    package enum Reason: String, Sendable {
        /// The reader requested a full pass.
        case asked
        /// The position belongs to another feed: of another database, of another larder, or of an earlier change log
        /// that was lost.
        case otherFeed = "other-feed"
        /// The change log no longer has all changes after the position.
        case forgotten
    }

    /// A range of keys. A step of a full pass returns every entry in its range.
    package struct Range: Hashable, Sendable {
        /// The key after which the range begins; nil if the range begins with the first key.
        package var after: [UInt8]?
        /// The last key of the range; nil if the range has no end.
        package var through: [UInt8]?
    }

    /// The position to continue from.
    package var position: FeedPosition
    package var state: State
    /// Why a full pass begins; nil if none begins.
    package var reason: Reason?
    package var range: Range?
    /// The larder's time when the step began, in milliseconds since 1970.
    package var time: Int64
    package var changes: [FeedItem] = []
}

/// The limits of a step, and of a list of entries.
package struct FeedOptions: Sendable {
    /// The step returns only changes of keys with this prefix, and purges that may concern such keys.
    package var prefix: [UInt8] = []
    /// The maximum number of changes, or entries of a full pass, that one step returns.
    package var count = 100
    /// The number of bytes of keys and values at which a step ends. The last change or entry may exceed it.
    package var bytes = 1_048_576

    package init() {}

    /// The enumeration of all entries after a key.
    package func enumeration(after: [UInt8]?) -> EnumerationOptions {
        var enumeration = EnumerationOptions(prefix: prefix, includeExpired: true)
        // Start at the key that follows `after` in byte order, unless the keys with the prefix begin later.
        if let start = after.map({ $0 + [0] }), !start.lexicographicallyPrecedes(prefix) { enumeration.start = start }
        return enumeration
    }
}
