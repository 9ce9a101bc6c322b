extension Database {
    /// Returns the changes since a position, in the order of commits, each key with its current entry. If the change
    /// log no longer has those changes, a full pass begins: its steps return all entries in the order of their keys,
    /// and the changes made since the pass began.
    ///
    /// A reader that applies the steps in order, and for each ``FeedStep/range`` removes the keys that the step does
    /// not name, ends up with the contents of the database, except for changes that later steps report. No state is
    /// kept for a reader: a position may be used on any connection and any number of times. May block.
    package func changes(since position: FeedPosition, _ options: FeedOptions) throws(LarderError) -> FeedStep {
        try ForkGuard.check("follow")
        if case .deleted = appliedState.presence { throw deletedError("follow") }
        let time = now()
        // Wait for the commits, so that everything applied before this time is included.
        pipeline.drain()
        switch position.start {
        case .beginning: return try beginPass(.asked, time, options)
        case .end:
            let (feed, end) = beginFeed()
            return FeedStep(position: FeedPosition(feed: feed, end), state: .current, time: time)
        case .behind(let feed, let place):
            // The unit of a position without a feed may be later than the last recorded change. Then continue from that
            // change.
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
            // Queue the writing of the new log to the files, so that it happens in the order of the commits.
            _ = pipeline.enqueue(perform: { [log = context.changeLog] in log.prepare() }, committed: { _ in })
            pipeline.drain()
        }
        return (begun.feed, begun.end)
    }

    private func beginPass(_ reason: FeedStep.Reason, _ time: Int64, _ options: FeedOptions) throws(LarderError)
        -> FeedStep
    {
        if reason != .asked { context.statistics.feedFallbacks.add() }
        // Changes applied from now on are reported. The full pass finds the results of earlier ones.
        let (feed, end) = beginFeed()
        var step = FeedStep(
            position: FeedPosition(feed: feed, end, .notBegun), state: .scan, reason: reason, time: time)
        try resume(&step, options)
        return step
    }

    // MARK: Changes

    /// Adds changes with the current entries of their keys. An entry may be newer than the change; then a later change
    /// reports it again.
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

    /// The entry of a key, fresh or stale.
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

    /// The most entries that one step reads without returning them, because they are gone.
    private static let goneMax = 100_000

    /// Adds the next part of a full pass.
    private func resume(_ step: inout FeedStep, _ options: FeedOptions) throws(LarderError) {
        guard let pass = step.position.pass, case .behind(let feed?, let place) = step.position.start else { return }
        step.state = .scan
        let count = step.changes.count
        while true {
            do throws(LarderError) {
                // Read this place before the entries, so that a change up to it is not newer than the entry of its key.
                let known = context.changeLog.end(of: self)?.end ?? place
                let purge = context.changeLog.finishedPurge(of: self)
                let through = try read(after: pass.after, known, purge, place.sequence, &step, options)
                step.range = FeedStep.Range(after: pass.after, through: through)
                step.position = FeedPosition(feed: feed, place, through.map { .through($0) })
                return
            } catch {
                // The database was emptied or reopened in the meantime.
                guard error.code == .purged || error.code == .invalidated else { throw error }
                step.changes.removeLast(step.changes.count - count)
            }
        }
    }

    /// - Returns: the last key that was read; nil at the end.
    private func read(
        after: [UInt8]?, _ known: ChangePlace, _ purge: ChangeVersion?, _ sequence: UInt64, _ step: inout FeedStep,
        _ options: FeedOptions
    ) throws(LarderError) -> [UInt8]? {
        var enumeration = EnumerationOptions(prefix: options.prefix, includeExpired: true)
        // Start at the next key in byte order, unless the prefix's range begins after that.
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
                // The entry survived the purge, so its version must be later than that of the purge.
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
    /// Wakes `waiter` once when there is a matching change after a place.
    /// - Returns: false, without waking it, if there is one already, or the feed is a different one.
    package func wait(_ waiter: FeedWaiter, feed: UInt64, behind place: ChangePlace) -> Bool {
        context.changeLog.wait(waiter, in: self, feed: feed, behind: place)
    }

    /// Stops waiting for a change. Idempotent.
    package func stopWaiting(_ waiter: FeedWaiter) { context.changeLog.stopWaiting(waiter, in: self) }
}
