import LarderEngine

/// The nearest deadlines of entries: all those before ``horizon``, and none from then on. Its memory is limited: if the
/// deadlines take more, the horizon moves to an earlier time. To move it to a later time, the owner *scans* the entries
/// whose deadlines are in the range that ``beginScan(now:)`` returns, slice by slice, while entries change.
///
/// So no expiry is missed or found twice:
///
/// - A scan moves the horizon before it reads any entry. So later changes of an entry are known, and what a slice has
///   read is ignored if the entry has changed since the slice began.
/// - Expired entries that a scan finds are reported at once, and not added. So more than fit may expire together.
/// - An entry whose deadline passes during the scan may be found after it was reported. So such entries are remembered,
///   up to a limit. Above it, the other ones are reported after the scan.
///
/// Not thread-safe: its owner guards it.
struct DeadlineWindow {
    private struct Scan {
        let range: Range<Int64>
        /// The reported entries that the scan may still find.
        var reported: Set<EntryName> = []
        /// The entries, and the databases with all their entries, that have changed since the current slice began; nil
        /// between slices.
        var changed: (entries: Set<EntryName>, databases: Set<ObjectIdentifier>)?

        func ignores(_ name: EntryName) -> Bool {
            guard let changed, !reported.contains(name) else { return true }
            return changed.entries.contains(name) || changed.databases.contains(ObjectIdentifier(name.database))
        }
    }

    private var watch = DeadlineWatch<EntryName>()
    private(set) var horizon: Int64
    private var scan: Scan?
    /// The latest time of which the owner has informed this object.
    private var now: Int64
    private let bytesMax: Int
    /// An upper bound of the memory of `watch`.
    private var bytes = 0
    /// The length in milliseconds of the range that the next scan adds.
    private var span: Int64
    private let spanMax: Int64
    /// The next scan waits until there are at most so many deadlines, because more would not fit.
    private var refillCount = Int.max
    /// Whether the next scan waits until the horizon has passed, because the deadlines from then on do not fit.
    private var waitsForHorizon = false

    /// The memory of an entry in addition to its key: its parts of the dictionary and the heap of ``DeadlineWatch``,
    /// and the head of the key's array.
    static let entryBytes = 192
    private static let reportedMax = 32_768
    private static let spanMin: Int64 = 2048

    /// - Parameters:
    ///   - start: earlier deadlines are ignored.
    ///   - spanMax: the maximum length of the range that one scan adds, in milliseconds; `max` for an unlimited range.
    ///   - bytesMax: the maximum memory for the deadlines.
    init(from start: Int64, spanMax: Int64, bytesMax: Int) {
        (horizon, now) = (start, start)
        self.spanMax = spanMax
        span = spanMax
        self.bytesMax = bytesMax
    }

    var count: Int { watch.count }
    /// No deadline is due before this time; nil if there is none.
    var nearest: Int64? { watch.nearest }

    /// All expiries before this time, which is at most `now + 1`, were reported. Valid after ``popDue(now:)`` has
    /// returned nil.
    func reportedUntil(now: Int64) -> Int64 { min(now + 1, scan?.range.lowerBound ?? horizon, horizon) }

    func deadline(_ name: EntryName) -> Int64? { watch.deadline(name) }

    // MARK: Changes

    /// Records that an entry has changed, and its new deadline; nil for none.
    /// - Returns: the entry's previous deadline; nil if it had none, or none before the horizon.
    mutating func set(_ name: EntryName, _ deadline: Int64?) -> Int64? {
        scan?.changed?.entries.insert(name)
        guard let deadline, deadline < horizon else { return watch.set(name, nil) }
        let old = watch.set(name, deadline)
        limit(added: name)
        return old
    }

    /// Records that the entries of a database were removed or replaced.
    mutating func removeAll(of database: any DatabaseIdentity) {
        scan?.changed?.databases.insert(ObjectIdentifier(database))
        watch.removeAll { $0.database === database }
    }

    private static func bytes(_ name: EntryName) -> Int { entryBytes + name.key.count }

    private mutating func limit(added name: EntryName) {
        bytes += Self.bytes(name)
        guard bytes > bytesMax else { return }
        bytes = watch.keys.reduce(0) { $0 + Self.bytes($1) }
        // Drop about as much as is needed to halve the memory.
        guard bytes > bytesMax / 2, let cut = watch.keepNearest(watch.count * (bytesMax / 2) / bytes, orUntil: now)
        else { return }
        bytes = watch.keys.reduce(0) { $0 + Self.bytes($1) }
        horizon = cut
        refillCount = watch.count / 2
        waitsForHorizon = false
    }

    // MARK: Time

    /// Removes and returns the next entry whose deadline has come.
    mutating func popDue(now: Int64) -> EntryName? {
        self.now = max(self.now, now)
        guard let from = scan?.range.lowerBound, from <= now else { return watch.popDue(now: now) }
        if let name = watch.popDue(now: from - 1) { return name }
        guard let count = scan?.reported.count, count < Self.reportedMax, let name = watch.popDue(now: now) else {
            return nil
        }
        scan?.reported.insert(name)
        return name
    }

    // MARK: Scans

    /// Begins a scan if one is due.
    /// - Returns: the range of deadlines to scan for; nil if no scan is due.
    mutating func beginScan(now: Int64) -> Range<Int64>? {
        guard scan == nil else { return nil }
        self.now = max(self.now, now)
        if horizon > now {
            guard !waitsForHorizon, horizon - now < spanMax / 2, watch.count <= refillCount else { return nil }
        }
        let (end, overflow) = max(horizon, now).addingReportingOverflow(span)
        let range = horizon..<(overflow ? .max : end)
        scan = Scan(range: range)
        horizon = range.upperBound
        refillCount = .max
        return range
    }

    /// Called before a slice is read.
    mutating func beginSlice() { scan?.changed = ([], []) }

    /// Called after all entries of a slice were passed to ``take(_:_:mayRepeat:)``.
    mutating func endSlice() { scan?.changed = nil }

    /// Takes an entry that a scan has found.
    /// - Parameter mayRepeat: whether the scan may find the entry again.
    /// - Returns: whether the entry has expired, and its expiry must be reported now.
    mutating func take(_ name: EntryName, _ deadline: Int64, mayRepeat: Bool) -> Bool {
        // If the memory was exceeded during the scan, the next scan finds the deadlines from the horizon on.
        guard deadline < horizon, scan?.ignores(name) == false, watch.deadline(name) == nil else { return false }
        if deadline <= now {
            if mayRepeat { scan?.reported.insert(name) }
            return true
        }
        watch.set(name, deadline)
        limit(added: name)
        return false
    }

    mutating func endScan() {
        guard let range = scan?.range else { return }
        scan = nil
        waitsForHorizon = horizon <= range.lowerBound
        guard spanMax < .max else { return }
        let isFull = horizon < range.upperBound
        span = isFull ? max(Self.spanMin, horizon - range.lowerBound) : min(spanMax, 2 * span)
    }
}
