import LarderPlatform

/// The latest changes of the databases that have followers (clients and other larders that copy every change). The log
/// contains the changed keys, without values, in the order of their changes. It has only the last change of each key.
///
/// A database has a log from its first follower on, until nobody has read the log for a week. If the logs reach the
/// memory limit, the oldest changes of the largest log are dropped. A follower that has not read them does a full pass:
/// it reads all entries of the database again. Writes never wait for followers.
///
/// After a restart of the process, but not after a failure of the machine, the log is restored from its files
/// (``ChangeLogFiles``). The committing thread writes each change to these files before it writes to the journal, so
/// the files contain every committed change. The last changes in the files may be missing in the journal: they were
/// never committed, and are ignored.
///
/// Thread-safe. `@unchecked Sendable`: `lock` guards the properties that are marked as guarded by it. While `lock` is
/// held, the only other lock that may be taken is that of `files`.
package final class ChangeLog: ChangeSubscriber, @unchecked Sendable {
    /// How long a log is kept after it was last read, in milliseconds: a week.
    static let unreadMilliseconds: Int64 = 7 * 86_400_000

    private let stream: ChangeStream
    private let larder: LarderContext
    /// The memory limit of all logs together, in bytes.
    let bytesMax: Int
    private let files: ChangeLogFiles
    private let lock = Lock()
    // Guarded by `lock`:
    private var logs: [ObjectIdentifier: DatabaseChanges] = [:]
    private var bytes = 0
    private var waiters: [ObjectIdentifier: FeedWaiters] = [:]
    private var nextNumber: UInt32 = 1
    /// The last upper bound of reserved commit sequence numbers that was written to the files.
    private var noted: UInt64 = 0
    /// The time at which the logs' `readAt` was last written to the files.
    private var readsNotedAt: Int64 = 0
    private var isFailing = false
    /// After a failed write, the time of the next attempt.
    private var triesAgainAt: Int64 = 0

    init(stream: ChangeStream, larder: LarderContext) {
        self.stream = stream
        self.larder = larder
        bytesMax = larder.options.changeLogBytes
        files = ChangeLogFiles(
            directory: larder.directory,
            bytesMax: { [disk = larder.disk, bytesMax] in
                min(max(bytesMax / 2, 64 << 10), disk.boundBytes.map { $0 / 64 } ?? .max)
            }, faults: larder.options.journalFaults)
    }

    private func now() -> Int64 { larder.time.unnoticed() }

    /// Returns the log of a database; nil if it has none. Called with `lock` held.
    private func log(of database: any DatabaseIdentity) -> DatabaseChanges? {
        guard let log = logs[ObjectIdentifier(database)], log.isOf(database) else { return nil }
        return log
    }

    // MARK: Reading

    /// Starts the log of a database if it has none.
    /// - Parameter sequence: a commit sequence number; everything up to it is committed.
    /// - Returns: the ID of the log's feed, the place of the log's last change, and whether the log is new.
    func begin(_ database: any DatabaseIdentity, behind sequence: UInt64) -> (
        feed: UInt64, end: ChangePlace, isNew: Bool
    ) {
        if let present = end(of: database) { return (present.feed, present.end, false) }
        // Subscribe before the log is created, so that no later change is missed. Followers get earlier changes by
        // reading all entries.
        subscribe()
        return lock.withLock {
            if let found = log(of: database) { return (found.feed, found.last, false) }
            let id = ObjectIdentifier(database)
            if let stale = logs[id] { bytes -= stale.bytes }
            let log = DatabaseChanges(database, number: nextNumber, at: ChangePlace(sequence), now: now())
            nextNumber += 1
            logs[id] = log
            return (log.feed, log.last, true)
        }
    }

    /// Followers also need changes that readers do not see yet. For example, an entry that does not expire under the
    /// current policy is made permanent. Only a later policy shows the difference.
    private func subscribe() { stream.subscribe(self, wantsUnseen: true) }

    /// Returns the ID of a database's feed, and the place of the feed's last change; nil if the database has no log.
    package func end(of database: any DatabaseIdentity) -> (feed: UInt64, end: ChangePlace)? {
        lock.withLock { log(of: database).map { ($0.feed, $0.last) } }
    }

    /// Returns the changes after a place.
    /// - Parameters:
    ///   - feed: the ID of the feed to which the place belongs; nil for the current feed.
    ///   - prefix: keys without this prefix are skipped.
    ///   - count: the maximum number of changes to return.
    package func changes(
        of database: any DatabaseIdentity, feed: UInt64?, behind place: ChangePlace, prefix: [UInt8], count: Int
    ) -> FoundChanges {
        lock.withLock {
            guard let log = log(of: database), log.has(place, of: feed) else { return .otherFeed }
            guard place >= log.forgotten else { return .forgotten }
            log.readAt = max(log.readAt, now())
            return log.changes(behind: place, prefix: prefix, count: count)
        }
    }

    /// Returns the last change of a key; nil if the log has none.
    func change(of key: [UInt8], in database: any DatabaseIdentity) -> LoggedChange? {
        lock.withLock { log(of: database)?.change(of: key) }
    }

    /// The limit for the time of another larder's version: a day ahead of the clock here, in milliseconds. A later time
    /// is due to a wrong clock or a forged version, and is reduced to this limit. Later versions made here get a higher
    /// time.
    private static let aheadMilliseconds: Int64 = 86_400_000

    /// Records the version of a change that was made in another larder, so that later changes here get higher versions.
    /// Called before the change is applied here.
    func observe(_ version: ChangeVersion, in database: any DatabaseIdentity) {
        let bound = now() + Self.aheadMilliseconds
        lock.withLock { log(of: database)?.observe(min(version.time, bound)) }
    }

    /// Returns the versions in the log that concern a key.
    func known(of key: [UInt8], in database: any DatabaseIdentity) -> KnownVersions {
        lock.withLock {
            guard let log = log(of: database) else { return KnownVersions() }
            return KnownVersions(
                change: log.change(of: key)?.version, purge: log.purgeVersion, finishedPurge: log.finishedPurge)
        }
    }

    /// Returns the version of the last completed purge of all entries; nil if none is known.
    func finishedPurge(of database: any DatabaseIdentity) -> ChangeVersion? {
        lock.withLock { log(of: database)?.finishedPurge }
    }

    /// Whether the database has a log: followers have read its changes.
    package func isFollowed(_ database: any DatabaseIdentity) -> Bool {
        lock.withLock { log(of: database) != nil }
    }

    /// The numbers that INFO shows about the logs.
    package struct Figures: Sendable {
        /// The number of databases that have a log (`databases`), and the number of changes in all logs (`changes`).
        package let databases: Int
        package let changes: Int
        /// The size of the logs in memory (`bytes`) and of their files (`fileBytes`), in bytes.
        package let bytes: Int
        package let fileBytes: Int
        /// The commit sequence numbers of the oldest and the newest change in a log; nil if there is none.
        package let oldest: UInt64?
        package let newest: UInt64?
    }

    package var figures: Figures {
        lock.withLock {
            let all = logs.values.filter { $0.count > 0 }
            return Figures(
                databases: logs.count, changes: all.reduce(0) { $0 + $1.count }, bytes: bytes,
                fileBytes: files.byteCount, oldest: all.compactMap(\.oldest).min(),
                newest: all.map(\.last.sequence).max())
        }
    }

    // MARK: Waiting

    /// Registers `waiter`, which is woken once, when a change after `place` matches the waiter's prefix.
    /// - Returns: false, without registering `waiter`, if such a change already exists, or if `feed` or `place` has
    ///   become invalid.
    package func wait(_ waiter: FeedWaiter, in database: any DatabaseIdentity, feed: UInt64, behind place: ChangePlace)
        -> Bool
    {
        lock.withLock {
            let id = ObjectIdentifier(database)
            guard let log = logs[id], log.feed == feed, place >= log.forgotten, place <= log.last,
                case .changes(let found, _, _, false) = log.changes(behind: place, prefix: waiter.prefix, count: 1),
                found.isEmpty
            else { return false }
            waiters[id, default: FeedWaiters()].add(waiter)
            return true
        }
    }

    /// Removes `waiter`, so that it is not woken any more. Idempotent.
    package func stopWaiting(_ waiter: FeedWaiter, in database: any DatabaseIdentity) {
        lock.withLock {
            let id = ObjectIdentifier(database)
            waiters[id]?.remove(waiter)
            if waiters[id]?.isEmpty ?? false { waiters[id] = nil }
        }
    }

    // MARK: Commits

    package func take(_ changes: [EntryChange]) {
        var records = ChangeRecordWriter()
        let woken = lock.withLock { () -> [FeedWaiter] in
            var woken: [FeedWaiter] = []
            for change in changes {
                let id = ObjectIdentifier(change.database)
                guard let log = logs[id], add(change, to: log, &records) else { continue }
                waiters[id]?.take(change, into: &woken)
                if waiters[id]?.isEmpty ?? false { waiters[id] = nil }
            }
            forgetOldest()
            return woken
        }
        write(records)
        for waiter in woken { waiter.wake() }
    }

    /// Adds a change to a log. Called with `lock` held.
    /// - Parameter records: gets the record of a change of a whole database. The record of an entry's change is in the
    ///   files since before the commit. If the files do not contain the log yet, its whole state is written later.
    /// - Returns: false for a change that is not logged.
    private func add(_ change: EntryChange, to log: DatabaseChanges, _ records: inout ChangeRecordWriter) -> Bool {
        let before = log.bytes
        defer { bytes += log.bytes - before }
        let record: ChangeRecord
        switch change.kind {
        case .stored, .removed:
            log.add(key: change.key, sequence: change.sequence, version(change, log))
            return true
        case .purged:
            let version = versionOfPurge(log)
            log.purge(version)
            record = .purge(log.number, version)
        case .purgedTags(let tags):
            let version = versionOfPurge(log)
            log.purge(.purgedTags(tags), version)
            record = .purgeTags(log.number, tags, version)
        case .purgedPrefix:
            let version = versionOfPurge(log)
            log.purge(.purgedPrefix(change.key), version)
            record = .purgePrefix(log.number, change.key, version)
        case .emptied, .replaced:
            log.beginAnew()
            record = .anew(log.number, feed: log.feed)
        case .deleted:
            logs[ObjectIdentifier(change.database)] = nil
            bytes -= log.bytes
            record = .deleted(log.number)
        // Followers' copies of an expired entry expire too, and followers keep their copies of an evicted entry.
        case .swept, .evicted, .expired, .fetchEnded, .outdated, .policyChanged, .allOutdated: return false
        }
        if log.isWritten { records.add(record) }
        return true
    }

    private func versionOfPurge(_ log: DatabaseChanges) -> ChangeVersion {
        log.stamp(now(), sequence: log.last.sequence + 1)
    }

    /// Returns the version of a change. Keeps a version that comes from another larder or already has a sequence. All
    /// other changes get a new version, higher than all previous ones in the log. Called in the order of the commits,
    /// with `lock` held.
    private func version(_ change: EntryChange, _ log: DatabaseChanges) -> ChangeVersion {
        let version = change.origin.version
        if change.origin.isForeign || version.sequence != 0 { return version }
        var time = version.time
        if time == 0 { if case .stored(let header) = change.kind { time = header.storedAt } else { time = now() } }
        return log.stamp(time, sequence: change.sequence)
    }

    /// Drops the oldest changes until the logs fit the memory limit. Called with `lock` held.
    private func forgetOldest() {
        while bytes > bytesMax, let largest = logs.values.max(by: { $0.bytes < $1.bytes }), largest.count > 0 {
            bytes -= largest.forget(atLeast: bytes - bytesMax + bytesMax / 16)
        }
    }

    /// Records that a purge from another larder is complete: all entries up to this version were removed.
    func finishForeignPurge(_ version: ChangeVersion, in database: any DatabaseIdentity) {
        lock.withLock { log(of: database)?.finishPurge(version) }
    }

    /// Records a purge from another larder that is about to remove all entries up to its version from this larder.
    func noteForeignPurge(_ version: ChangeVersion, in database: any DatabaseIdentity) {
        var records = ChangeRecordWriter()
        lock.withLock {
            guard let log = log(of: database) else { return }
            log.noteForeignPurge(version)
            if log.isWritten { records.add(.foreignPurge(log.number, version)) }
        }
        write(records)
    }

    // MARK: Files. Called by the committing thread; write(_:) also by noteForeignPurge(_:in:).

    /// Restores the logs from the files of an earlier process, if these are valid. Called before anything is committed,
    /// and before more sequence numbers are reserved.
    /// - Parameter circumstances: nil if the journal or the file `SEQUENCES` is damaged, which makes the log's files
    ///   invalid.
    func load(_ circumstances: ChangeLogLoader.Circumstances?, find: @escaping (String) -> (any DatabaseIdentity)?) {
        do {
            let found = try files.read()
            if found.isEmpty { return }
            guard let circumstances else {
                throw ChangeLogLoader.Unusable(reason: "the journal or SEQUENCES is damaged")
            }
            var loader = ChangeLogLoader(circumstances, bytesMax: bytesMax, firstNumber: nextNumber, find: find)
            let loaded = try loader.load(found)
            files.adopt(loaded.segments)
            let oldest = now() - Self.unreadMilliseconds
            lock.withLock {
                for log in loaded.logs where log.readAt >= oldest {
                    guard let database = find(log.name) else { continue }
                    log.beginProcess()
                    logs[ObjectIdentifier(database)] = log
                    bytes += log.bytes
                    nextNumber = max(nextNumber, log.number + 1)
                }
            }
            if loaded.logs.isEmpty { files.discard() } else { subscribe() }
        } catch {
            let reason = (error as? ChangeLogLoader.Unusable)?.reason ?? "\(error)"
            larder.report(
                .info, "followers start with a full pass: the files of the change log are not used, because \(reason)"
            )
            files.discard()
        }
    }

    /// Assigns versions to stored and removed entries whose commit follows, and writes the changes to the files.
    /// - Returns: the changes with their versions; nil if there are no logs.
    @discardableResult
    func prepare(_ changes: [EntryChange]) -> [EntryChange]? {
        var records = ChangeRecordWriter()
        let prepared = lock.withLock { () -> [EntryChange]? in
            if logs.isEmpty { return nil }
            var changes = changes
            beginRecords(&records)
            for index in changes.indices {
                guard let log = logs[ObjectIdentifier(changes[index].database)] else { continue }
                let version = version(changes[index], log)
                changes[index].origin.version = version
                guard log.isWritten else { continue }
                let change = changes[index]
                records.add(.key(log.number, key: change.key, sequence: change.sequence, version))
            }
            return changes
        }
        write(records)
        return prepared
    }

    /// Writes the state of each log that is not in the files yet.
    func prepare() { prepare([]) }

    /// Adds the records that must precede a change: the bound of reserved sequence numbers if it was raised, and the
    /// databases that the current segment does not contain yet. If that segment is full, first starts a new one. Called
    /// with `lock` held.
    private func beginRecords(_ records: inout ChangeRecordWriter) {
        let present = larder.sequences.reservedUnits
        let time = now()
        forgetUnread(time, &records)
        if files.needsSegment {
            if isFailing, time < triesAgainAt { return }
            var first = ChangeRecordWriter()
            first.add(.start(reserved: present, machine: Array((larder.options.machineStart ?? "").utf8)))
            for log in logs.values { first.add(.database(log.number, name: Array(log.name.utf8), log.state)) }
            do throws(FileError) {
                try files.begin(first.bytes)
                for log in logs.values { log.isWritten = true }
                isFailing = false
            } catch {
                fail(error)
            }
            (noted, records) = (present, ChangeRecordWriter())
            return
        }
        if noted != present {
            records.add(.reserved(present))
            noted = present
        }
        for log in logs.values where !log.isWritten {
            records.add(.database(log.number, name: Array(log.name.utf8), log.state))
            log.isWritten = true
        }
    }

    /// Once an hour, records when each log was last read, and removes logs unread for a week. Called with `lock` held.
    private func forgetUnread(_ time: Int64, _ records: inout ChangeRecordWriter) {
        guard time - readsNotedAt >= 3_600_000 else { return }
        readsNotedAt = time
        for (id, log) in logs where log.isWritten {
            // A waiter counts as a reader.
            if waiters[id] != nil { log.readAt = time }
            if log.readAt < time - Self.unreadMilliseconds {
                logs[id] = nil
                bytes -= log.bytes
                records.add(.deleted(log.number))
            } else {
                records.add(.read(log.number, at: log.readAt))
            }
        }
    }

    private func write(_ records: ChangeRecordWriter) {
        if records.isEmpty { return }
        do throws(FileError) {
            try files.append(records.bytes)
        } catch {
            lock.withLock { fail(error) }
        }
    }

    /// Handles a failed write to the files: ``ChangeLogFiles`` has removed them, so all logs must be written to new
    /// files. Called with `lock` held.
    private func fail(_ error: FileError) {
        larder.report(
            isFailing ? .debug : .warning,
            "the change log cannot be written (\(error)): after a restart followers start with a full pass")
        isFailing = true
        triesAgainAt = now() + 1000
        for log in logs.values { log.isWritten = false }
    }

    /// Records in the files that a change of a whole database begins.
    func changing() { note(.changing) }

    /// Records in the files that the change of a whole database is complete and was published.
    func changed() { note(.changed) }

    private func note(_ record: ChangeRecord) {
        guard lock.withLock({ !logs.isEmpty }) else { return }
        var records = ChangeRecordWriter()
        records.add(record)
        write(records)
    }

    /// Removes the files, because they contain changes whose commit has failed.
    func abandon() {
        lock.withLock {
            if logs.isEmpty { return }
            files.discard()
            for log in logs.values { log.isWritten = false }
        }
    }

    /// Closes the files. All changes must have been committed, and no commit may follow.
    func close() {
        guard lock.withLock({ !logs.isEmpty }) else { return }
        prepare()
        var records = ChangeRecordWriter()
        lock.withLock { for log in logs.values where log.isWritten { records.add(.read(log.number, at: log.readAt)) } }
        records.add(.closed)
        files.close(records.bytes)
    }
}

/// The versions in a ``ChangeLog`` that concern one key.
struct KnownVersions {
    /// The last change of the key itself.
    var change: ChangeVersion?
    /// The last purge of the whole database, which may still be removing entries.
    var purge: ChangeVersion?
    /// The last purge of the whole database that is complete.
    var finishedPurge: ChangeVersion?

    /// The later of ``change`` and ``purge``; nil if neither is known.
    var last: ChangeVersion? { purge.map { max($0, change ?? $0) } ?? change }
}

/// A reader that waits for changes of a database.
package final class FeedWaiter: Sendable {
    let prefix: [UInt8]
    let wake: @Sendable () -> Void

    /// - Parameter wake: called once, by any thread, possibly with locks held. It must be short, and must not call the
    ///   engine.
    package init(prefix: [UInt8], wake: @escaping @Sendable () -> Void) { (self.prefix, self.wake) = (prefix, wake) }
}

/// The readers that wait for changes of one database, by their prefixes. So the cost of a change depends on the number
/// of different lengths of prefixes, and not on the number of readers.
private struct FeedWaiters {
    private var waiters: [[UInt8]: [FeedWaiter]] = [:]
    /// The number of prefixes in `waiters` of each length.
    private var lengths: [Int: Int] = [:]

    var isEmpty: Bool { waiters.isEmpty }

    mutating func add(_ waiter: FeedWaiter) {
        if waiters[waiter.prefix] == nil { lengths[waiter.prefix.count, default: 0] += 1 }
        waiters[waiter.prefix, default: []].append(waiter)
    }

    mutating func remove(_ waiter: FeedWaiter) {
        waiters[waiter.prefix]?.removeAll { $0 === waiter }
        if waiters[waiter.prefix]?.isEmpty ?? false { _ = removeAll(waiter.prefix) }
    }

    /// Removes the readers that a change concerns, and adds them to `taken`.
    mutating func take(_ change: EntryChange, into taken: inout [FeedWaiter]) {
        let prefixes =
            change.isOfOneEntry
            ? lengths.keys.filter { $0 <= change.key.count }.map { Array(change.key.prefix($0)) }
            : waiters.keys.filter(change.concerns)
        for prefix in prefixes { taken += removeAll(prefix) ?? [] }
    }

    private mutating func removeAll(_ prefix: [UInt8]) -> [FeedWaiter]? {
        guard let all = waiters.removeValue(forKey: prefix) else { return nil }
        lengths[prefix.count, default: 0] -= 1
        if lengths[prefix.count] == 0 { lengths[prefix.count] = nil }
        return all
    }
}
