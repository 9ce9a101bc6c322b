import LarderPlatform

/// The latest changes of followed databases: the keys in the order of their changes, without their values. For each key
/// only the last change is kept.
///
/// The log of a database starts with its first follower, and ends when it has not been read for a week; without a log a
/// write costs nothing. If the memory limit is reached, the oldest changes of the database with the most changes are
/// dropped, and a follower that has not read them does a full pass. Writes never wait for followers.
///
/// The next process continues from the log's files (``ChangeLogFiles``), unless the machine has failed. The committing
/// thread writes the files before the journal, so they contain every committed change. Uncommitted changes at the end
/// of the files are detected by comparison with the end of the journal.
///
/// Thread-safe. `@unchecked Sendable`: the properties below "guarded" are guarded by `lock`. Only the files' lock is
/// taken while `lock` is held.
package final class ChangeLog: ChangeObserver, @unchecked Sendable {
    /// How long an unread log is kept, in milliseconds: a week.
    static let unreadMilliseconds: Int64 = 7 * 86_400_000

    private let feed: ChangeFeed
    private let larder: LarderContext
    /// The memory limit for keys and their places.
    let bytesMax: Int
    private let files: ChangeLogFiles
    private let lock = Lock()
    // Guarded:
    private var logs: [ObjectIdentifier: DatabaseChanges] = [:]
    private var bytes = 0
    private var waiters: [ObjectIdentifier: [FeedWaiter]] = [:]
    private var nextNumber: UInt32 = 1
    /// The upper bound of reserved sequences, as last written to the files.
    private var noted: UInt64 = 0
    /// When the times of the last reads were last written to the files.
    private var readsNotedAt: Int64 = 0
    private var isFailing = false
    /// When writing is retried after a failure.
    private var triesAgainAt: Int64 = 0

    init(feed: ChangeFeed, larder: LarderContext) {
        self.feed = feed
        self.larder = larder
        bytesMax = larder.options.changeLogBytes
        files = ChangeLogFiles(
            directory: larder.directory,
            bytesMax: { [disk = larder.disk, bytesMax] in
                min(max(bytesMax / 2, 64 << 10), disk.boundBytes.map { $0 / 64 } ?? .max)
            }, faults: larder.options.journalFaults)
    }

    private func now() -> Int64 { larder.time.unnoticed() }

    /// Called with `lock` held.
    private func log(of database: any DatabaseIdentity) -> DatabaseChanges? {
        guard let log = logs[ObjectIdentifier(database)], log.isOf(database) else { return nil }
        return log
    }

    // MARK: Reading

    /// Starts the log of a database, unless it exists.
    /// - Parameter sequence: everything up to it is committed.
    /// - Returns: the feed, its current end, and whether it is new.
    func begin(_ database: any DatabaseIdentity, behind sequence: UInt64) -> (
        feed: UInt64, end: ChangePlace, isNew: Bool
    ) {
        if let present = end(of: database) { return (present.feed, present.end, false) }
        // Turn it on before the log starts, so that no change is missed. Followers find earlier changes by reading the
        // entries.
        feed.turn(on: true, for: self)
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

    /// The feed of a database and its current end; nil if it was never followed.
    package func end(of database: any DatabaseIdentity) -> (feed: UInt64, end: ChangePlace)? {
        lock.withLock { log(of: database).map { ($0.feed, $0.last) } }
    }

    /// Returns the changes after a place.
    /// - Parameters:
    ///   - feed: nil for the current one, whichever it is.
    ///   - prefix: other keys are skipped.
    ///   - count: the most changes to return.
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

    /// The last remembered change of a key.
    func change(of key: [UInt8], in database: any DatabaseIdentity) -> LoggedChange? {
        lock.withLock { log(of: database)?.change(of: key) }
    }

    /// How far later changes here may be dated ahead of the clock to follow another larder's change, in milliseconds: a
    /// day. A version further ahead comes from a wrong clock or is forged, and is not followed.
    private static let aheadMilliseconds: Int64 = 86_400_000

    /// Records a change of another larder before it is applied, so that later changes here get later versions.
    func observe(_ version: ChangeVersion, in database: any DatabaseIdentity) {
        let bound = now() + Self.aheadMilliseconds
        lock.withLock { log(of: database)?.observe(min(version.time, bound)) }
    }

    /// The remembered versions of a key.
    func known(of key: [UInt8], in database: any DatabaseIdentity) -> KnownVersions {
        lock.withLock {
            guard let log = log(of: database) else { return KnownVersions() }
            return KnownVersions(
                change: log.change(of: key)?.version, purge: log.purgeVersion, finishedPurge: log.finishedPurge)
        }
    }

    /// The version of the last complete purge of all entries; nil if none is known.
    func finishedPurge(of database: any DatabaseIdentity) -> ChangeVersion? {
        lock.withLock { log(of: database)?.finishedPurge }
    }

    /// Whether the database has followers, so that its changes are remembered.
    package func isFollowed(_ database: any DatabaseIdentity) -> Bool {
        lock.withLock { log(of: database) != nil }
    }

    /// The numbers for INFO.
    package struct Figures: Sendable {
        /// The number of databases with remembered changes, and of changes.
        package let databases: Int
        package let changes: Int
        /// In memory, and on the disk.
        package let bytes: Int
        package let fileBytes: Int
        /// The sequences of the oldest and the newest remembered change; nil if there is none.
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

    /// Wakes `waiter` once when there is a matching change after a place.
    /// - Returns: false, without waking it, if there is one already, or the feed is a different one.
    package func wait(_ waiter: FeedWaiter, in database: any DatabaseIdentity, feed: UInt64, behind place: ChangePlace)
        -> Bool
    {
        lock.withLock {
            let id = ObjectIdentifier(database)
            guard let log = logs[id], log.feed == feed, place >= log.forgotten, place <= log.last,
                case .changes(let found, _, _, false) = log.changes(behind: place, prefix: waiter.prefix, count: 1),
                found.isEmpty
            else { return false }
            waiters[id, default: []].append(waiter)
            return true
        }
    }

    /// Stops waiting. Idempotent.
    package func stopWaiting(_ waiter: FeedWaiter, in database: any DatabaseIdentity) {
        lock.withLock {
            let id = ObjectIdentifier(database)
            waiters[id]?.removeAll { $0 === waiter }
            if waiters[id]?.isEmpty ?? false { waiters[id] = nil }
        }
    }

    /// Removes and returns the waiters for a change. Called with `lock` held.
    /// - Parameter concerns: whether the change matches a waiter.
    private func takeWaiters(_ id: ObjectIdentifier, _ concerns: (FeedWaiter) -> Bool) -> [FeedWaiter] {
        guard let all = waiters[id] else { return [] }
        var woken: [FeedWaiter] = []
        let rest = all.filter { waiter in
            let isMeant = concerns(waiter)
            if isMeant { woken.append(waiter) }
            return !isMeant
        }
        waiters[id] = rest.isEmpty ? nil : rest
        return woken
    }

    // MARK: Commits

    /// Followers need unseen changes too, because their copies of the entries expire by the same rules.
    package var wantsUnseen: Bool { true }

    package func changed(_ changes: [EntryChange]) {
        let woken = lock.withLock { () -> [FeedWaiter] in
            var concerned: [ObjectIdentifier: [[UInt8]]] = [:]
            for change in changes {
                let id = ObjectIdentifier(change.database)
                guard let log = logs[id] else { continue }
                switch change.kind {
                case .stored, .removed: break
                // The same entry expires on its followers.
                case .swept, .evicted: continue
                }
                bytes += log.add(key: change.key, sequence: change.sequence, version(change, log))
                if waiters[id] != nil { concerned[id, default: []].append(change.key) }
            }
            forgetOldest()
            return concerned.flatMap { id, keys in
                takeWaiters(id) { waiter in keys.contains { $0.starts(with: waiter.prefix) } }
            }
        }
        for waiter in woken { waiter.wake() }
    }

    /// Returns the version of a change: its own if it has one, otherwise one later than all previous versions. Called
    /// in the order of the commits, with `lock` held.
    private func version(_ change: EntryChange, _ log: DatabaseChanges) -> ChangeVersion {
        let version = change.origin.version
        if change.origin.isForeign || version.sequence != 0 { return version }
        var time = version.time
        if time == 0 { if case .stored(let header) = change.kind { time = header.storedAt } else { time = now() } }
        return log.stamp(time, sequence: change.sequence)
    }

    /// Called with `lock` held.
    private func forgetOldest() {
        while bytes > bytesMax, let largest = logs.values.max(by: { $0.bytes < $1.bytes }), largest.count > 0 {
            bytes -= largest.forget(atLeast: bytes - bytesMax + bytesMax / 16)
        }
    }

    package func purged(_ database: any DatabaseIdentity) {
        let time = now()
        change(database) { log in
            let version = log.stamp(time, sequence: log.last.sequence + 1)
            log.purge(version)
            return .purge(log.number, version)
        }
    }

    package func emptied(_ database: any DatabaseIdentity) {
        // After a purge, the same feed continues.
        change(database) { $0.takePurge() ? nil : Self.beginAnew($0) }
    }

    package func replaced(_ database: any DatabaseIdentity) { change(database, Self.beginAnew) }

    private static func beginAnew(_ log: DatabaseChanges) -> ChangeRecord {
        log.beginAnew()
        return .anew(log.number, feed: log.feed)
    }

    package func deleted(_ database: any DatabaseIdentity) {
        change(database) { log in
            logs[ObjectIdentifier(database)] = nil
            return .deleted(log.number)
        }
    }

    package func purged(tags: [[UInt8]], in database: any DatabaseIdentity) {
        let time = now()
        change(database) { log in
            let version = log.stamp(time, sequence: log.last.sequence + 1)
            log.purge(tags: tags, version)
            return .purgeTags(log.number, tags, version)
        }
    }

    /// Records that all entries with a prefix are about to be removed, including entries that only followers still
    /// have.
    func purged(prefix: [UInt8], in database: any DatabaseIdentity) {
        let time = now()
        change(database, prefix: prefix) { log in
            let version = log.stamp(time, sequence: log.last.sequence + 1)
            log.purge(prefix: prefix, version)
            return .purgePrefix(log.number, prefix, version)
        }
    }

    /// Records that a purge from another larder is complete: all entries up to the version are removed.
    func finishForeignPurge(_ version: ChangeVersion, in database: any DatabaseIdentity) {
        lock.withLock { log(of: database)?.finishPurge(version) }
    }

    /// Records a purge of another larder, which is about to remove all entries up to the version here.
    func noteForeignPurge(_ version: ChangeVersion, in database: any DatabaseIdentity) {
        var records = ChangeRecordWriter()
        lock.withLock {
            guard let log = log(of: database) else { return }
            log.noteForeignPurge(version)
            if log.isWritten { records.add(.foreignPurge(log.number, version)) }
        }
        write(records)
    }

    package func fetchAgain(_ key: [UInt8], in database: any DatabaseIdentity) {}
    package func policyChanged(_ database: any DatabaseIdentity) {}
    package func purgesChanged(_ database: any DatabaseIdentity) {}

    /// - Parameters:
    ///   - prefix: the common prefix of all keys concerned.
    ///   - body: changes a log, with `lock` held, and returns the record for the files.
    private func change(
        _ database: any DatabaseIdentity, prefix: [UInt8] = [], _ body: (DatabaseChanges) -> ChangeRecord?
    ) {
        var records = ChangeRecordWriter()
        let woken = lock.withLock { () -> [FeedWaiter] in
            let id = ObjectIdentifier(database)
            guard let log = logs[id] else { return [] }
            let before = log.bytes
            let record = body(log)
            bytes += (logs[id] == nil ? 0 : log.bytes) - before
            // If the log is not in the files yet, its whole state is written later, with this change.
            if let record, log.isWritten { records.add(record) }
            return takeWaiters(id) { $0.prefix.starts(with: prefix) || prefix.starts(with: $0.prefix) }
        }
        write(records)
        for waiter in woken { waiter.wake() }
    }

    // MARK: Files. Called by the committing thread, except noteForeignPurge(_:in:).

    /// Continues from the files of an earlier process, if they are valid. Called before anything is committed, and
    /// before the reserved sequences are raised.
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
            if loaded.logs.isEmpty { files.discard() } else { feed.turn(on: true, for: self) }
        } catch {
            let reason = (error as? ChangeLogLoader.Unusable)?.reason ?? "\(error)"
            larder.report(
                .info, "followers start with a full pass: the files of the change log are not used, because \(reason)"
            )
            files.discard()
        }
    }

    /// Writes changes that are about to be committed, and assigns their versions.
    func prepare(_ changes: inout [EntryChange]) {
        var records = ChangeRecordWriter()
        lock.withLock {
            if logs.isEmpty { return }
            beginRecords(&records)
            for index in changes.indices {
                guard let log = logs[ObjectIdentifier(changes[index].database)] else { continue }
                switch changes[index].kind {
                case .stored, .removed: break
                case .swept, .evicted: continue
                }
                let version = version(changes[index], log)
                changes[index].origin.version = version
                guard log.isWritten else { continue }
                records.add(
                    .key(
                        log.number, key: changes[index].key, sequence: changes[index].sequence, version))
            }
        }
        write(records)
    }

    /// Adds all followed databases to the files.
    func prepare() {
        var none: [EntryChange] = []
        prepare(&none)
    }

    /// Adds the records that must come first: a new segment if the current one is full, and the databases that the
    /// segment does not contain yet. Called with `lock` held.
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

    /// Hourly, records when the logs were read, and drops unread ones. Called with `lock` held.
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

    /// Handles the loss of the files. Called with `lock` held.
    private func fail(_ error: FileError) {
        larder.report(
            isFailing ? .debug : .warning,
            "the change log cannot be written (\(error)): after a restart followers start with a full pass")
        isFailing = true
        triesAgainAt = now() + 1000
        for log in logs.values { log.isWritten = false }
    }

    /// Records that a change of a whole database begins.
    func changing() { note(.changing) }

    /// Records that the change of a whole database is complete and its observers were notified.
    func changed() { note(.changed) }

    private func note(_ record: ChangeRecord) {
        guard lock.withLock({ !logs.isEmpty }) else { return }
        var records = ChangeRecordWriter()
        records.add(record)
        write(records)
    }

    /// Invalidates the files, because the last prepared change was not committed.
    func abandon() {
        lock.withLock {
            if logs.isEmpty { return }
            files.discard()
            for log in logs.values { log.isWritten = false }
        }
    }

    /// Closes the files. All changes must be committed before, and no commit may follow.
    func close() {
        guard lock.withLock({ !logs.isEmpty }) else { return }
        prepare()
        var records = ChangeRecordWriter()
        lock.withLock { for log in logs.values where log.isWritten { records.add(.read(log.number, at: log.readAt)) } }
        records.add(.closed)
        files.close(records.bytes)
    }
}

/// The remembered versions of a key's changes.
struct KnownVersions {
    /// The last change of the key itself.
    var change: ChangeVersion?
    /// The last purge of everything.
    var purge: ChangeVersion?
    /// The last complete purge of everything.
    var finishedPurge: ChangeVersion?

    /// The last change of the key, including purges; nil if none is known.
    var last: ChangeVersion? { purge.map { max($0, change ?? $0) } ?? change }
}

/// A reader that waits for changes of a database.
package final class FeedWaiter: Sendable {
    let prefix: [UInt8]
    let wake: @Sendable () -> Void

    /// - Parameter wake: called once, by any thread, possibly with locks held. It must be short, and must not call the
    ///   engine.
    package init(prefix: [UInt8], wake: @escaping @Sendable () -> Void) {
        self.prefix = prefix
        self.wake = wake
    }
}
