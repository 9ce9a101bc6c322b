import LarderEngine
import LarderJSONCoding
import LarderPlatform
import LarderQueries

/// The live queries of a database. Applies changes of entries to their rows: each changed entry is read once, and only
/// the queries are evaluated that the entry may concern.
///
/// Used by one thread at a time: by that of ``LiveQueries``, or by one that begins a query.
final class LiveDatabase {
    let database: Database
    /// Whether the database was deleted, and no other one has taken its place yet.
    var isDeleted = false
    private let limits: QueryLimits
    private var numbered: [Int: LiveQuery] = [:]
    /// The queries that demand one of some values at a path, by the hashes of these values.
    private var byValue: [QueryPath: [Int: QuerySet]] = [:]
    /// All other queries.
    private var others = QuerySet()
    /// The queries that have a row of a key.
    private var members: [Key: QuerySet] = [:]
    /// The deadlines of all rows.
    private var deadlines = DeadlineWatch<Key>()
    private var batch = CandidateBatch()
    private var document = JSONDocument()
    /// The number of examined changes.
    private var number = 0
    /// The changes up to this commit unit were noted, although the engine may still count them as unpublished.
    private var lastNoted: UInt64 = 0
    /// The queries that must run again, or whose readers need the whole result.
    private var incomplete: [LiveQuery] = []
    /// The approximate size of all queries with their rows.
    private(set) var rowBytes = 0
    /// Until when no change is applied after an error, in milliseconds of the monotonic clock; nil if there was none.
    private var retryAt: Int64?

    /// Returns the noted changes, and forgets them, if they are wanted.
    /// - Parameter examined: changes up to this commit unit need not be noted any more; 0 for none.
    typealias NoteSource = (_ examined: UInt64, _ areWanted: (NotedChanges) -> Bool) -> NotedChanges?

    /// The number of keys that are looked up together.
    private static let batchCount = 64
    /// The number of keys that are looked up at one instant, at first and at most.
    private static let atOnceMin = 256
    private static let atOnceMax = 16_384
    /// The number of attempts to find the result after a commit.
    private static let roundsMax = 16
    private static let retryMilliseconds: Int64 = 250

    init(_ database: Database, _ limits: QueryLimits) { (self.database, self.limits) = (database, limits) }

    /// When the next row expires, or earlier; nil if none does.
    var nextDeadline: Int64? { isFailing ? nil : deadlines.nearest }
    private var isFailing: Bool { retryAt.map { MonotonicClock.milliseconds() < $0 } ?? false }

    // MARK: Queries

    var queries: [LiveQuery] { Array(numbered.values) }
    var count: Int { numbered.count }

    func add(_ query: LiveQuery) {
        numbered[query.number] = query
        rowBytes += query.byteCount
        query.notedBytes.store(query.byteCount, ordering: .relaxed)
        if let equality = query.query.equality {
            for value in equality.values {
                byValue[equality.path, default: [:]][value.equalityHash, default: QuerySet()].insert(query.number)
            }
        } else {
            others.insert(query.number)
        }
        for row in query.rows.all { remember(row.key, row.expires, query, isNew: true) }
        query.examined = 0
        if query.isUnknown || query.rows.needsRun { incomplete.append(query) }
    }

    func has(_ query: LiveQuery) -> Bool { numbered[query.number] === query }

    func remove(_ query: LiveQuery) {
        query.hasEnded = true
        query.events = []
        numbered[query.number] = nil
        others.remove(query.number)
        if let equality = query.query.equality {
            for value in equality.values {
                let hash = value.equalityHash
                byValue[equality.path]?[hash]?.remove(query.number)
                if byValue[equality.path]?[hash]?.isEmpty ?? false { byValue[equality.path]?[hash] = nil }
            }
            if byValue[equality.path]?.isEmpty ?? false { byValue[equality.path] = nil }
        }
        for row in query.rows.all { forget(row.key, query) }
        rowBytes -= query.byteCount
    }

    /// Ends the queries with the most rows until these have at most `most` bytes.
    func endLargest(most: Int) {
        for query in queries.sorted(by: { $0.byteCount > $1.byteCount }) where rowBytes > most {
            end(query, LiveQueries.tooManyRows)
        }
    }

    private func remember(_ key: [UInt8], _ expires: Int64?, _ query: LiveQuery, isNew: Bool) {
        let key = Key(key)
        if isNew { members[key, default: QuerySet()].insert(query.number) }
        deadlines.set(key, expires)
    }

    private func forget(_ key: [UInt8], _ query: LiveQuery) {
        let key = Key(key)
        members[key]?.remove(query.number)
        guard members[key]?.isEmpty ?? true else { return }
        members[key] = nil
        deadlines.set(key, nil)
    }

    /// Changes the rows of a query, and notes their size.
    private func change<Result>(_ query: LiveQuery, _ body: (inout LiveRows) -> Result) -> Result {
        let before = query.rows.byteCount
        defer {
            rowBytes += query.rows.byteCount - before
            query.notedBytes.store(query.byteCount, ordering: .relaxed)
        }
        return body(&query.rows)
    }

    private func replaceRows(of query: LiveQuery, _ found: LiveQuery.FoundRows) {
        for row in query.rows.all { forget(row.key, query) }
        change(query) { $0.replace(found.rows, isCut: found.isCut) }
        for row in found.rows { remember(row.key, row.expires, query, isNew: true) }
    }

    // MARK: Changes

    /// Makes all queries run again.
    func markUnknown() {
        for query in queries { query.isUnknown = true }
        incomplete = queries
    }

    /// Applies noted changes, and those of entries that have expired by now, and sends the differences.
    /// - Throws: an error of the engine that no query can survive.
    func apply(_ notes: NoteSource, now: Int64) throws(LarderError) {
        if isFailing {
            // Queries that have begun since the error lack these changes.
            if let noted = notes(0, { !$0.isEmpty }) {
                isDeleted = isDeleted || noted.isDeleted
                markUnknown()
            }
            return
        }
        retryAt = nil
        var touched: [LiveQuery] = []
        do throws(LarderError) {
            try settle(notes, now: now, &touched)
        } catch {
            if [.closed, .forked].contains(error.code) || error.code == .deleted && !isDeleted { throw error }
            // The rows are unknown until the engine can be read again. The events are dropped.
            markUnknown()
            retryAt = MonotonicClock.milliseconds() + Self.retryMilliseconds
        }
        for query in touched { flush(query) }
    }

    /// Examines noted changes until the rows are those at an instant between two commits.
    ///
    /// Most entries may have a later text than that of the noted change, and other entries of the later commit are not
    /// noted yet. So the last changes are examined as of one instant, and with them all that were applied before it.
    /// After ``roundsMax`` attempts, the rows may be within a commit: writers are too fast.
    func settle(_ notes: NoteSource, now: Int64, _ touched: inout [LiveQuery]) throws(LarderError) {
        var expired: [Key: NotedChanges.Note] = [:]
        while let key = deadlines.popDue(now: now) {
            expired[key] = NotedChanges.Note(reason: .expired, isStored: false)
        }
        try examine(expired, nil, &touched)
        var most = Self.atOnceMin
        for round in 1...Self.roundsMax {
            // Entries are examined before, so that the locks are held for few only, and not at all if no row changes.
            if let noted = notes(0, { round == 1 || round == Self.roundsMax || $0.isWide || $0.keys.count > most }) {
                try examine(noted, &touched)
            }
            try completeAll(&touched)
            if touched.isEmpty { return }
            if try examineAtOnce(notes, most: most, &touched), incomplete.isEmpty { return }
            most = min(2 * most, Self.atOnceMax)
        }
    }

    private func examine(_ noted: NotedChanges, _ touched: inout [LiveQuery]) throws(LarderError) {
        isDeleted = isDeleted || noted.isDeleted
        lastNoted = max(lastNoted, noted.last)
        if noted.isUnknown { markUnknown() }
        if noted.hasOtherPolicy {
            for query in queries where query.refersToExpiry {
                query.isUnknown = true
                incomplete.append(query)
            }
        }
        var keys = noted.keys
        if let reason = noted.recheck {
            for key in members.keys where keys[key] == nil {
                keys[key] = NotedChanges.Note(reason: reason, isStored: false)
            }
        }
        try examine(keys, noted.recheck, &touched)
    }

    private func examine(
        _ keys: [Key: NotedChanges.Note], _ recheck: LiveReason?, _ touched: inout [LiveQuery]
    ) throws(LarderError) {
        var rest = Array(keys)[...]
        while !rest.isEmpty {
            let notes = rest.prefix(Self.batchCount)
            try batch.read(notes.map(\.key), in: database)
            _ = try examineBatch(notes, recheck, &touched)
            rest = rest.dropFirst(Self.batchCount)
        }
    }

    /// Examines the noted changes as of one instant between two commits.
    /// - Returns: false if there are too many, one concerns the whole database, or an entry was read later.
    private func examineAtOnce(
        _ notes: NoteSource, most: Int, _ touched: inout [LiveQuery]
    ) throws(LarderError) -> Bool {
        var found: [(key: Key, value: NotedChanges.Note)] = []
        let isRead = try batch.readAtOnce(in: database, most: most) { unpublished, last in
            guard var noted = notes(last, { !$0.isWide && $0.keys.count <= most }) else { return nil }
            for change in unpublished where change.sequence > lastNoted { noted.note(change) }
            found = Array(noted.keys)
            return found.map(\.key)
        }
        return isRead ? try examineBatch(found[...], nil, &touched) : false
    }

    /// Examines changes whose entries are in ``batch``.
    /// - Returns: whether all entries were in it.
    private func examineBatch(
        _ notes: ArraySlice<(key: Key, value: NotedChanges.Note)>, _ recheck: LiveReason?,
        _ touched: inout [LiveQuery]
    ) throws(LarderError) -> Bool {
        var isComplete = true
        for (place, (key, note)) in notes.enumerated() {
            try batch.withCandidate(place) { (candidate) throws(LarderError) in
                switch candidate.found {
                case .entry(let entry): examine(key, entry, note, &touched)
                case .absent: examineAbsent(key, note, recheck, &touched)
                case .unread:
                    isComplete = false
                    guard let record = try read(key) else { return examineAbsent(key, note, recheck, &touched) }
                    let deadline = database.rules.deadline(record.header)
                    record.withPayload { payload in
                        let entry = EntryView(
                            key: candidate.key, storedAt: record.header.storedAt, deadline: deadline, payload: payload)
                        examine(key, entry, note, &touched)
                    }
                }
            }
        }
        return isComplete
    }

    /// Returns nil if there is no fresh entry.
    private func read(_ key: Key) throws(LarderError) -> Record? {
        do throws(LarderError) { return try database.get(key) } catch {
            if error.code == .deleted { return nil }
            throw error
        }
    }

    private func examineAbsent(
        _ key: Key, _ note: NotedChanges.Note, _ recheck: LiveReason?, _ touched: inout [LiveQuery]
    ) {
        // It was stored, and has ended since.
        let reason = note.reason == .changed ? recheck ?? .removed : note.reason
        for number in members[key]?.numbers ?? [] {
            guard let query = numbered[number], !query.hasStopped else { continue }
            take(change(query) { $0.update(Array(key.bytes), nil, reason, isStored: false) }, of: query, &touched)
        }
    }

    private func examine(
        _ key: Key, _ entry: EntryView, _ note: NotedChanges.Note, _ touched: inout [LiveQuery]
    ) {
        number += 1
        let isJSON = document.load(entry.payload)
        let facts = QueryFacts(key: entry.key, stored: entry.storedAt, expires: entry.deadline)
        var concerned = members[key]?.numbers ?? []
        if isJSON {
            for (path, queries) in byValue {
                path.forEachHash(document, facts) { hash in
                    if let found = queries[hash] { concerned += found.numbers }
                }
            }
            concerned += others.numbers
        }
        if concerned.isEmpty { return }
        let key = Array(key.bytes)
        // All queries share the copy.
        var text: [UInt8]?
        for candidate in concerned {
            guard let query = numbered[candidate], query.examined != number, !query.hasStopped else { continue }
            query.examined = number
            var row: LiveRows.Row?
            if isJSON, query.condition?(document, facts) ?? true {
                let position = QueryPosition(values: query.rows.order.values(document, facts), key: key)
                row = LiveRows.Row(position: position, expires: entry.deadline)
                if query.hasTexts {
                    text = text ?? [UInt8](entry.payload)
                    row?.text = text
                }
            }
            let wasMember = query.rows.contains(key)
            let steps = change(query) { $0.update(key, row, .changed, isStored: note.isStored) }
            if query.rows.contains(key) { remember(key, entry.deadline, query, isNew: !wasMember) }
            if !steps.isEmpty { take(steps, of: query, &touched) }
        }
    }

    // MARK: Events

    /// Adds the events of changes of the result.
    private func take(_ steps: [LiveRows.Step], of query: LiveQuery, _ touched: inout [LiveQuery]) {
        if query.events.isEmpty { touched.append(query) }
        for step in steps {
            switch step {
            case .forgotten(let key): if !query.rows.contains(key) { forget(key, query) }
            case .out(let key, let reason): query.events.append(.out(key: key, reason))
            case .set(let key, let index): query.events.append(.set(row(key, of: query), index: index))
            }
        }
        if query.rows.needsRun { incomplete.append(query) }
    }

    private func row(_ key: [UInt8], of query: LiveQuery) -> LiveRow { LiveRow(key: key, text: query.rows.text(key)) }

    private func flush(_ query: LiveQuery) {
        defer { query.events.removeAll() }
        guard !query.isBehind, !query.isUnknown, !query.hasEnded, !query.hasStopped else { return }
        if query.needsReset {
            query.needsReset = false
            query.isBehind = !query.send([.reset(query.visible)])
        } else if !query.events.isEmpty {
            query.isBehind = !query.send(query.events)
        }
    }

    private func completeAll(_ touched: inout [LiveQuery]) throws(LarderError) {
        let incomplete = self.incomplete
        self.incomplete = []
        for query in incomplete where !query.hasEnded && !query.hasStopped {
            do throws(QueryFailure) { try complete(query, &touched) } catch {
                if case .engine(let error) = error { throw error }
                end(query, error)
            }
        }
    }

    /// Runs a query again that lacks rows.
    private func complete(_ query: LiveQuery, _ touched: inout [LiveQuery]) throws(QueryFailure) {
        if query.isUnknown {
            replaceRows(of: query, try query.run(in: database, limits, scans: true))
            (query.isUnknown, query.needsReset) = (false, true)
        } else if query.rows.needsRun {
            let found = try query.run(in: database, limits, scans: true)
            let new = found.rows.filter { !query.rows.contains($0.key) }
            let steps = change(query) { $0.refill(found.rows, isCut: found.isCut) }
            for row in new where query.rows.contains(row.key) { remember(row.key, row.expires, query, isNew: true) }
            take(steps, of: query, &touched)
        }
        if query.needsReset { touched.append(query) }
    }

    /// Sends the whole result to a reader that was slow.
    func resume(_ query: LiveQuery) {
        guard query.isBehind else { return }
        (query.isBehind, query.needsReset) = (false, true)
        incomplete.append(query)
    }

    func end(_ query: LiveQuery, _ failure: QueryFailure) {
        query.failure = failure
        if query.isStarted { _ = query.send([.ended(failure)]) }
        remove(query)
    }
}

/// The numbers of some queries, in order, so that one of thousands is found quickly.
private struct QuerySet {
    private(set) var numbers: [Int] = []

    var isEmpty: Bool { numbers.isEmpty }

    mutating func insert(_ number: Int) {
        let place = numbers.partitioningIndex { $0 >= number }
        if place == numbers.count || numbers[place] != number { numbers.insert(number, at: place) }
    }

    mutating func remove(_ number: Int) {
        let place = numbers.partitioningIndex { $0 >= number }
        if place < numbers.count, numbers[place] == number { numbers.remove(at: place) }
    }
}
