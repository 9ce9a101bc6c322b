extension Database {
    /// Returns the next step of the feed after a position: the changes since then, in the order of commits, each
    /// changed key with its current entry. If the change log no longer has these changes, a full pass begins. The steps
    /// of a full pass return all entries in the order of their keys, and the changes made since the pass began.
    ///
    /// A reader keeps a copy of the database by applying the steps in order. For a step with a ``FeedStep/range``, it
    /// must also remove its keys in this range that the step does not return. The larder keeps no state for a reader: a
    /// position may be used on any connection and any number of times. May block.
    package func changes(since position: FeedPosition, _ options: FeedOptions) throws(LarderError) -> FeedStep {
        try ForkGuard.check("follow")
        if case .deleted = appliedState.presence { throw deletedError("follow") }
        let time = now()
        // Wait for the commits under way, so that the step includes everything that was applied before `time`.
        pipeline.drain()
        switch position.start {
        case .beginning: return try beginPass(.asked, time, options)
        case .end:
            let (feed, end) = beginFeed()
            return FeedStep(position: FeedPosition(feed: feed, end), state: .current, time: time)
        case .behind(let feed, let place):
            // A position without a feed ID may have a commit unit after the last recorded change. Then continue from
            // that change.
            let present = context.changeLog.end(of: self)
            let from = feed == nil ? present.map { min(place, $0.end) } ?? place : place
            let found = context.changeLog.changes(
                of: self, feed: feed, behind: from, prefix: options.prefix, count: options.count)
            switch found {
            case .otherFeed: return try beginPass(.otherFeed, time, options)
            case .forgotten: return try beginPass(.forgotten, time, options)
            case .changes(let changes, let feed, let end, let hasMore):
                var step = FeedStep(
                    position: FeedPosition(feed: feed, end, position.pass), state: hasMore ? .changes : .current,
                    time: time)
                try notify(changes, &step, options)
                if position.pass != nil { try resume(&step, options) }
                return step
            }
        }
    }

    private func beginFeed() -> (feed: UInt64, end: ChangePlace) {
        let begun = context.changeLog.begin(self, behind: pipeline.lastDecided)
        if begun.isNew {
            // Write the new log to its files through the commit pipeline, so that this happens in the order of the
            // commits.
            _ = pipeline.enqueue(perform: { [log = context.changeLog] in log.prepare() }, committed: { _ in })
            pipeline.drain()
        }
        return (begun.feed, begun.end)
    }

    private func beginPass(_ reason: FeedStep.Reason, _ time: Int64, _ options: FeedOptions) throws(LarderError)
        -> FeedStep
    {
        if reason != .asked { context.statistics.feedFallbacks.add() }
        // The feed reports the changes applied from now on. The full pass reads the results of earlier ones.
        let (feed, end) = beginFeed()
        var step = FeedStep(
            position: FeedPosition(feed: feed, end, .notBegun), state: .scan, reason: reason, time: time)
        try resume(&step, options)
        return step
    }

    // MARK: Changes

    /// Adds changes to the step, with the current entries of their keys. If an entry is newer than the change, a later
    /// change reports it again.
    private func notify(_ changes: [LoggedChange], _ step: inout FeedStep, _ options: FeedOptions) throws(LarderError) {
        var bytes = 0
        var ticket = CommitTicket.none
        for (index, change) in changes.enumerated() {
            let kind: FeedChange.Kind
            switch change.kind {
            case .purge: kind = .purged
            case .purgePrefix(let prefix): kind = .purgedPrefix(prefix)
            case .purgeTags(let tags): kind = .purgedTags(tags)
            case .key(let key):
                bytes += key.count
                if let record = try present(key, step.time, &ticket) {
                    bytes += record.payloadCount
                    kind = stored(key, record)
                } else {
                    kind = .removed(key: key)
                }
            }
            step.changes.append(FeedChange(kind: kind, sequence: change.place.sequence, version: change.version))
            if bytes >= options.bytes, index + 1 < changes.count, case .behind(let feed?, _) = step.position.start {
                step.position = FeedPosition(feed: feed, change.place, step.position.pass)
                step.state = .changes
                break
            }
        }
        try pipeline.wait(for: ticket)
    }

    private func stored(_ key: [UInt8], _ record: Record) -> FeedChange.Kind {
        let rules = rules
        return .stored(
            key: key, record, header: rules.leaving(record.header), deadline: rules.deadline(record.header))
    }

    /// Returns the entry of a key if it is fresh or stale, otherwise nil.
    private func present(_ key: [UInt8], _ time: Int64, _ ticket: inout CommitTicket) throws(LarderError) -> Record? {
        if !isReady(forWriting: false) { try prepare(forWriting: false) }
        var found: Record?
        let request = Request(
            keys: [key.withUnsafeBytes { Key($0) }], loading: .records, access: .mayBlock, now: time,
            fillCache: false)
        let read = try run(request) { (update) throws(LarderError) in
            found = update.stored(0).flatMap { update.rules.freshness($0.header, now: time) == .gone ? nil : $0 }
        }
        if let read, read.sequence > ticket.sequence { ticket = read }
        return found
    }

    // MARK: A full pass

    /// The most expired or purged entries that one step skips before it ends.
    private static let goneMax = 100_000

    /// Adds the next part of a full pass to the step.
    private func resume(_ step: inout FeedStep, _ options: FeedOptions) throws(LarderError) {
        guard let pass = step.position.pass, case .behind(let feed?, let place) = step.position.start else { return }
        step.state = .scan
        let count = step.changes.count
        while true {
            do throws(LarderError) {
                // Read the end of the change log before the entries. Then the entries include every change up to this
                // place.
                let known = context.changeLog.end(of: self)?.end ?? place
                let purge = context.changeLog.finishedPurge(of: self)
                let through = try read(after: pass.after, known, purge, place.sequence, &step, options)
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
    private func read(
        after: [UInt8]?, _ known: ChangePlace, _ purge: ChangeVersion?, _ sequence: UInt64, _ step: inout FeedStep,
        _ options: FeedOptions
    ) throws(LarderError) -> [UInt8]? {
        var enumeration = EnumerationOptions(prefix: options.prefix, includeExpired: true)
        // Start at the key that follows `after` in byte order, unless the keys with the prefix begin later.
        if let start = after.map({ $0 + [0] }), !start.lexicographicallyPrecedes(options.prefix) {
            enumeration.start = start
        }
        guard let cursor = try cursor(enumeration) else { return nil }
        defer { cursor.close() }
        let rules = rules
        var (count, bytes, gone) = (0, 0, 0)
        while try cursor.next() {
            let header = try cursor.header()
            let key = Array(try cursor.key().bytes)
            if rules.freshness(header, now: step.time) == .gone {
                gone += 1
                if gone >= Self.goneMax { return key }
                continue
            }
            let record = try cursor.record()
            var version = ChangeVersion(time: header.storedAt)
            if let change = context.changeLog.change(of: key, in: self), change.place <= known {
                version = change.version
            } else if let purge {
                // The entry was stored after the purge, so its version must be later than that of the purge.
                version = max(version, purge.next)
            }
            step.changes.append(FeedChange(kind: stored(key, record), sequence: sequence, version: version))
            count += 1
            bytes += key.count + record.payloadCount
            if count == options.count || bytes >= options.bytes { return key }
        }
        return nil
    }
}

extension Database {
    /// Registers `waiter`, which is woken once when there is a matching change after a place.
    /// - Returns: false, without registering it, if there is such a change already, or if the database now has a
    ///   different feed.
    package func wait(_ waiter: FeedWaiter, feed: UInt64, behind place: ChangePlace) -> Bool {
        context.changeLog.wait(waiter, in: self, feed: feed, behind: place)
    }

    /// Stops waiting for a change. Idempotent.
    package func stopWaiting(_ waiter: FeedWaiter) { context.changeLog.stopWaiting(waiter, in: self) }
}
