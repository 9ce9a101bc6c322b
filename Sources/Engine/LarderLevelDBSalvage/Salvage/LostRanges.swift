/// A set of lost keys, stored as ranges.
struct LostRanges {
    private var collected: [KeyRange] = []
    private static let countMax = 1 << 16

    mutating func add(_ range: KeyRange) {
        collected.append(range)
        guard collected.count > Self.countMax else { return }
        collected = ranges()
        // To limit memory, adjacent ranges are merged. This may report too many lost keys, but never too few.
        if collected.count > Self.countMax / 2 {
            collected = stride(from: 0, to: collected.count, by: 2).map { index in
                KeyRange(lower: collected[index].lower, upper: collected[min(index + 1, collected.count - 1)].upper)
            }
        }
    }

    /// Returns the fewest ranges that contain all lost keys, ascending and disjoint.
    func ranges() -> [KeyRange] {
        var union: [KeyRange] = []
        for range in collected.sorted(by: { KeyRange.isLess($0.lower, $1.lower) }) {
            guard let last = union.last, let end = last.upper else {
                if union.isEmpty { union.append(range) }
                continue
            }
            if KeyRange.isLess(end, range.lower) {
                union.append(range)
            } else if range.upper.map({ KeyRange.isLess(end, $0) }) ?? true {
                union[union.count - 1].upper = range.upper
            }
        }
        return union
    }
}
