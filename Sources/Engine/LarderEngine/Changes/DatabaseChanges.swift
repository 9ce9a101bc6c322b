import LarderVocabulary

/// The log of one database's latest changes, for followers. Guarded by the lock of its ``ChangeLog``.
final class DatabaseChanges {
    /// The approximate memory of a change in addition to its key, in bytes.
    private static let overhead = 160
    /// The maximum number of changes that one read examines, including those that it skips.
    private static let lookedAtMax = 20_000

    private weak var database: (any DatabaseIdentity)?
    let name: String
    /// The number that identifies the database in the files.
    let number: UInt32
    /// Whether the current segment of the files contains this database.
    var isWritten = false
    /// When a follower last read the log.
    var readAt: Int64
    /// The random ID of the feed (the series of changes in this log). A place in another feed is valid in this feed
    /// only if this feed continues the other feed.
    private(set) var feed = UInt64.random(in: 1 ... .max)
    /// The feeds of earlier processes that this feed continues, the oldest first.
    private(set) var previousFeeds: [PreviousFeed] = []
    /// The place up to which, inclusive, the log no longer has the changes.
    private(set) var forgotten: ChangePlace
    private(set) var last: ChangePlace
    private(set) var bytes = 0
    /// The changes in the order of their places. An element becomes nil when a later change of its key is added.
    private var items: [LoggedChange?] = []
    /// The index of the first item that was not dropped.
    private var first = 0
    /// The number of nil items from ``first`` on.
    private var voidCount = 0
    /// For each changed key, the index of its item.
    private var places: [[UInt8]: Int] = [:]
    private var purge: ChangeVersion?
    /// The version of the last completed purge of all entries. Every existing entry has a higher version.
    private(set) var finishedPurge: ChangeVersion?
    /// The time of the latest known change. Later changes made here get at least this time.
    private var latest: Int64 = 0

    init(_ database: any DatabaseIdentity, number: UInt32, at place: ChangePlace, now: Int64) {
        self.database = database
        self.number = number
        name = database.name
        readAt = now
        forgotten = place
        last = place
    }

    /// Creates a log from a feed's state in the files, without the changes before this state.
    init(_ database: any DatabaseIdentity, number: UInt32, _ state: FeedState) {
        self.database = database
        self.number = number
        name = database.name
        (readAt, feed, previousFeeds) = (state.readAt, state.feed, state.previousFeeds)
        (forgotten, last, purge) = (state.last, state.last, state.purge)
        latest = state.purge?.time ?? 0
    }

    /// The state of the feed, without its changes.
    var state: FeedState {
        FeedState(feed: feed, last: last, purge: purge, readAt: readAt, previousFeeds: previousFeeds)
    }

    /// Takes over the feed's state from the start of a new segment of the files.
    /// - Returns: false if the state does not continue this log, because changes are missing in between.
    func resume(_ state: FeedState) -> Bool {
        guard state.last == last else { return false }
        (readAt, feed, previousFeeds, purge) = (state.readAt, state.feed, state.previousFeeds, state.purge)
        return true
    }

    /// The maximum number of ``previousFeeds``; the oldest are dropped.
    private static let previousFeedsMax = 64

    /// Starts a new feed, which continues the feed of the previous process. The new feed has its own ID, because a copy
    /// of the larder may continue the old feed with other changes.
    func beginProcess() {
        previousFeeds.append(PreviousFeed(feed: feed, end: last))
        if previousFeeds.count > Self.previousFeedsMax { previousFeeds.removeFirst() }
        feed = UInt64.random(in: 1 ... .max)
        isWritten = false
    }

    /// Whether a place in the feed `other` (nil: this feed) is valid in this feed. It is valid if `other` is this feed
    /// or a feed that this feed continues.
    func has(_ place: ChangePlace, of other: UInt64?) -> Bool {
        if let other, other != feed {
            return previousFeeds.last { $0.feed == other }.map { place <= $0.end } ?? false
        }
        return place <= last
    }

    /// The commit sequence number of the oldest change in the log; nil if there is none.
    var oldest: UInt64? { items[first...].lazy.compactMap(\.self).first?.place.sequence }

    /// Whether this log belongs to `database`, and not to an earlier database at the same memory address.
    func isOf(_ database: any DatabaseIdentity) -> Bool { self.database === database }

    /// The number of changes in the log.
    var count: Int { items.count - first - voidCount }

    /// Returns the last change of a key; nil if the log has none.
    func change(of key: [UInt8]) -> LoggedChange? { places[key].flatMap { items[$0] } }

    /// The highest version of a purge of all entries, completed or still running; nil if none is known.
    var purgeVersion: ChangeVersion? { purge }

    /// Records a purge from another larder that is about to remove all entries up to its version from this larder.
    func noteForeignPurge(_ version: ChangeVersion) {
        purge = max(purge ?? version, version)
        latest = max(latest, version.time)
    }

    /// Records that a purge has removed all entries up to this version from this larder.
    func finishPurge(_ version: ChangeVersion) { finishedPurge = max(finishedPurge ?? version, version) }

    // MARK: Versions

    /// Returns a new version for a change made here. It is higher than all previous versions, even if the clock was set
    /// back.
    func stamp(_ time: Int64, sequence: UInt64) -> ChangeVersion {
        latest = max(latest, time)
        return ChangeVersion(time: latest, sequence: sequence)
    }

    /// Records the time of a change made in another larder. Later changes here get a later time, because the sequence
    /// numbers of two larders cannot be compared.
    func observe(_ time: Int64) { latest = max(latest, time.addingClamped(1)) }

    // MARK: Adding

    /// Adds the change of a key in place of the key's previous change.
    func add(key: [UInt8], sequence: UInt64, _ version: ChangeVersion) {
        advance(sequence)
        void(key)
        places[key] = items.count
        append(.removed(key: key), version)
    }

    func purge(_ version: ChangeVersion) {
        advance(last.sequence)
        forgetKeys()
        append(.purged, version)
        purge = max(purge ?? version, version)
        finishPurge(version)
    }

    /// Adds a purge of a prefix or of tags.
    func purge(_ kind: FeedChange<Never>, _ version: ChangeVersion) {
        advance(last.sequence)
        append(kind, version)
    }

    /// Starts a new feed, because the contents of the database have become unknown: all followers read all entries
    /// again.
    /// - Parameter number: the ID of the new feed.
    func beginAnew(_ number: UInt64 = UInt64.random(in: 1 ... .max)) {
        feed = number
        previousFeeds = []
        forgetKeys()
        (items, first, voidCount, bytes) = ([], 0, 0, 0)
        (purge, finishedPurge) = (nil, nil)
        forgotten = last
    }

    /// Drops the changes of single keys. Keeps all purges, so that they are still reported to followers.
    private func forgetKeys() {
        let kept = items[first...].compactMap(\.self).filter { if case .removed = $0.kind { false } else { true } }
        places = [:]
        (items, first, voidCount) = (kept, 0, 0)
        bytes = kept.reduce(0) { $0 + Self.cost($1) }
    }

    private func advance(_ sequence: UInt64) {
        last = sequence > last.sequence ? ChangePlace(sequence) : ChangePlace(last.sequence, last.step + 1)
    }

    private func append(_ kind: FeedChange<Never>, _ version: ChangeVersion) {
        latest = max(latest, version.time)
        let item = LoggedChange(place: last, kind: kind, version: version)
        items.append(item)
        bytes += Self.cost(item)
    }

    /// Returns the approximate memory of a change in bytes.
    private static func cost(_ item: LoggedChange) -> Int {
        switch item.kind {
        case .removed(let key): overhead + 2 * key.count
        case .purged: overhead
        case .purgedPrefix(let prefix): overhead + prefix.count
        case .purgedTags(let tags): tags.reduce(overhead) { $0 + overhead + $1.count }
        }
    }

    private func void(_ key: [UInt8]) {
        guard let index = places.removeValue(forKey: key), let item = items[index] else { return }
        items[index] = nil
        voidCount += 1
        bytes -= Self.cost(item)
        if voidCount > 1024, voidCount > items.count / 2 { compact() }
    }

    private func compact() {
        items = items[first...].compactMap(\.self)
        (first, voidCount) = (0, 0)
        places = [:]
        for (index, item) in items.enumerated() { if case .removed(let key)? = item?.kind { places[key] = index } }
    }

    // MARK: Forgetting

    /// Drops the oldest changes until at least `least` bytes are freed or no change is left.
    /// - Returns: the number of bytes freed.
    func forget(atLeast least: Int) -> Int {
        let before = bytes
        while first < items.count, before - bytes < least {
            defer { first += 1 }
            guard let item = items[first] else {
                voidCount -= 1
                continue
            }
            forgotten = item.place
            bytes -= Self.cost(item)
            if case .removed(let key) = item.kind { places[key] = nil }
            items[first] = nil
        }
        if first > 1024, first > items.count / 2 { compact() }
        return before - bytes
    }

    // MARK: Reading

    func changes(behind place: ChangePlace, prefix: [UInt8], count: Int) -> FoundChanges {
        var found: [LoggedChange] = []
        var looked = 0
        var upTo = place
        for index in firstIndex(behind: place)..<items.count {
            guard let item = items[index] else { continue }
            guard found.count < count, looked < Self.lookedAtMax else {
                return .changes(found, feed: feed, upTo: upTo, hasMore: true)
            }
            looked += 1
            upTo = item.place
            switch item.kind {
            case .removed(let key) where !key.starts(with: prefix): continue
            case .purgedPrefix(let purged) where !purged.starts(with: prefix) && !prefix.starts(with: purged): continue
            case .removed, .purged, .purgedPrefix, .purgedTags: found.append(item)
            }
        }
        return .changes(found, feed: feed, upTo: last, hasMore: false)
    }

    /// Returns the index after the last item whose place is at most `place`.
    private func firstIndex(behind place: ChangePlace) -> Int {
        var (low, high) = (first, items.count)
        while low < high {
            let middle = (low + high) / 2
            // The next item that is not nil.
            var probe = middle
            while probe < high, items[probe] == nil { probe += 1 }
            guard probe < high, let item = items[probe] else {
                high = middle
                continue
            }
            if item.place <= place { low = probe + 1 } else { high = middle }
        }
        return low
    }
}
