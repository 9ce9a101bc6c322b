/// The number of a database's entries in each state, at one instant.
package struct EntryNumbers: Hashable, Sendable {
    package var fresh = 0
    package var stale = 0
    /// All stored entries, including expired entries that were not removed yet.
    package var stored = 0
    /// How many of the fresh entries expire soon.
    package var ends = Ends()

    /// The number of fresh entries that expire within a minute, an hour and a day, and the number that never expire.
    /// Each period includes the shorter ones.
    package struct Ends: Hashable, Sendable {
        package var minute = 0
        package var hour = 0
        package var day = 0
        package var never = 0

        mutating func add(_ deadline: Int64?, now: Int64, _ difference: Int) {
            guard let deadline else {
                never += difference
                return
            }
            let left = deadline.subtractingClamped(now)
            if left < Deadlines.minute { minute += difference }
            if left < Deadlines.hour { hour += difference }
            if left < Deadlines.day { day += difference }
        }

        /// Makes the numbers consistent with each other and with the number of fresh entries. They may be inconsistent
        /// because they are estimates: see ``Deadlines``.
        mutating func limit(to fresh: Int) {
            never = min(max(0, never), fresh)
            day = min(max(0, day), fresh - never)
            hour = min(max(0, hour), day)
            minute = min(max(0, minute), hour)
        }
    }

    /// Adds an entry with this header to the numbers if `difference` is 1, and subtracts it if `difference` is -1.
    mutating func add(
        _ header: Result<RecordHeader, RecordHeader.Defect>, _ rules: FreshnessRules, now: Int64, _ difference: Int
    ) {
        stored += difference
        switch rules.state(header, now: now) {
        case .fresh:
            fresh += difference
            ends.add((try? header.get()).flatMap { rules.deadline($0) }, now: now, difference)
        case .stale: stale += difference
        case .gone: break
        }
    }
}

/// The numbers of a store's records by state. Valid until the next write to the store.
struct CountedRecords {
    /// The number of writes to the store before the count.
    let generation: UInt64
    let rules: FreshnessRules
    private(set) var total = 0
    private var fresh = CountedEnds()
    /// The entries that are fresh or stale.
    private var kept = CountedEnds()
    private var deadlines = Deadlines()

    init(_ rules: FreshnessRules, at generation: UInt64) { (self.generation, self.rules) = (generation, rules) }

    /// The time until which ``numbers(now:)`` can return the numbers. Later, the records must be counted again.
    var knownUntil: Int64 { min(fresh.knownUntil, kept.knownUntil) }

    mutating func add(_ record: UnsafeRawBufferPointer, now: Int64) {
        total += 1
        let header = try? RecordHeader.read(record, rules.purges).get()
        let deadline = header.flatMap { rules.deadline($0) }
        fresh.add(deadline, now: now)
        deadlines.add(deadline, now: now)
        kept.add(header.flatMap { rules.end($0) }, now: now)
    }

    mutating func complete() {
        fresh.complete()
        kept.complete()
    }

    func numbers(now: Int64) -> EntryNumbers {
        let fresh = fresh.count(now: now)
        return EntryNumbers(
            fresh: fresh, stale: kept.count(now: now) - fresh, stored: total, ends: deadlines.ends(now: now))
    }
}

/// A histogram of the deadlines of many entries. The bins are a second wide for the first two minutes, a minute wide up
/// to two hours, and a quarter of an hour wide up to two days.
///
/// It is filled while all entries are counted, not from a sample, because LevelDB cannot choose an entry at random:
/// keys that share a prefix with many others would rarely be chosen. At the time of the count the numbers are exact.
/// Later, while nothing is written, they are off by at most the content of one bin.
struct Deadlines {
    /// A minute, an hour and a day in milliseconds.
    static let (minute, hour, day): (Int64, Int64, Int64) = (60_000, 3_600_000, 86_400_000)

    /// The groups of bins of equal width. For each group: the distance of its first bin from ``start`` and the width of
    /// its bins, both in milliseconds, and the index of its first bin.
    private static let widths: [(from: Int64, width: Int64, first: Int)] = [
        (0, 1000, 0), (2 * minute, minute, 120), (2 * hour, hour / 4, 120 + 118),
    ]
    private static let binCount = 120 + 118 + 184

    private var start: Int64?
    private var bins = [Int](repeating: 0, count: binCount)
    private var never = 0

    /// - Parameter deadline: in milliseconds since 1970; nil for never. A deadline that has passed is not counted.
    mutating func add(_ deadline: Int64?, now: Int64) {
        guard let deadline else {
            never += 1
            return
        }
        if start == nil { start = now }
        let after = deadline.subtractingClamped(start ?? now)
        guard after > 0, let index = Self.bin(after) else { return }
        bins[index] += 1
    }

    /// Returns the index of the bin for a deadline that is `after` milliseconds after ``start``; nil if it is after the
    /// last bin.
    private static func bin(_ after: Int64) -> Int? {
        let group = widths.last { $0.from <= after } ?? widths[0]
        let index = group.first + Int((after - group.from) / group.width)
        return index < binCount ? index : nil
    }

    /// Estimates the number of deadlines in the first `after` milliseconds after ``start``. If the period ends within a
    /// bin, a proportional part of that bin is counted.
    private func count(before after: Int64) -> Double {
        guard let last = Self.bin(max(0, after)) else { return Double(bins.reduce(0, +)) }
        let group = Self.widths.last { $0.first <= last } ?? Self.widths[0]
        let from = group.from + Int64(last - group.first) * group.width
        let part = Double(max(0, after) - from) / Double(group.width)
        return Double(bins[..<last].reduce(0, +)) + part * Double(bins[last])
    }

    func ends(now: Int64) -> EntryNumbers.Ends {
        let passed = now - (start ?? now)
        let gone = count(before: passed)
        func within(_ milliseconds: Int64) -> Int { Int((count(before: passed + milliseconds) - gone).rounded()) }
        return EntryNumbers.Ends(
            minute: within(Self.minute), hour: within(Self.hour), day: within(Self.day), never: never)
    }
}

/// A count of the entries whose deadline has not passed. It keeps the nearest deadlines, so the count is exact at any
/// time before ``knownUntil``.
struct CountedEnds {
    /// The maximum number of deadlines that are kept.
    private let nearestMax: Int
    /// The nearest deadlines. Sorted by ``complete()``.
    private var nearest: [Int64] = []
    /// The number of entries with a deadline that is not in ``nearest``, or without a deadline.
    private var later = 0
    /// The earliest deadline that is not in ``nearest``. From this time on the count is unknown.
    private(set) var knownUntil = Int64.max

    init(nearestMax: Int = 1 << 14) { self.nearestMax = nearestMax }

    /// - Parameter end: the deadline in milliseconds since 1970; nil for never.
    mutating func add(_ end: Int64?, now: Int64) {
        guard let end, end < knownUntil else {
            later += 1
            return
        }
        guard now < end else { return }
        nearest.append(end)
        if nearest.count >= 2 * nearestMax { forgetLater() }
    }

    mutating func complete() {
        if nearest.count > nearestMax { forgetLater() } else { nearest.sort() }
    }

    private mutating func forgetLater() {
        nearest.sort()
        knownUntil = nearest[nearestMax]
        later += nearest.count - nearestMax
        nearest.removeSubrange(nearestMax...)
    }

    func count(now: Int64) -> Int {
        var (low, high) = (0, nearest.count)
        while low < high {
            let middle = low + (high - low) / 2
            if nearest[middle] <= now { low = middle + 1 } else { high = middle }
        }
        return later + nearest.count - low
    }
}

extension FreshnessRules {
    func state(_ header: Result<RecordHeader, RecordHeader.Defect>, now: Int64) -> Freshness {
        guard case .success(let header) = header else { return .fresh }
        return freshness(header, now: now)
    }
}
