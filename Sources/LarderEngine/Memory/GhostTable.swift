/// Remembers for a while which entries left the small queue: by a part of their hash, in a table that grows with the main
/// queue and is looked at in one place only.
///
/// 8 bytes for each that is remembered. An entry may be forgotten early when its place is taken, and taken for another one
/// that has left with a chance of one in a billion or so; either costs a little of the hit ratio, never a wrong answer.
struct GhostTable {
    private struct Mark {
        /// 0: free.
        var fingerprint: UInt32 = 0
        var addedAt: UInt32 = 0
    }

    /// Places that a hash may be in.
    private static let ways = 4

    private var marks: ContiguousArray<Mark> = []
    private var clock: UInt32 = 0

    private static func fingerprint(_ hash: Int) -> UInt32 { UInt32(truncatingIfNeeded: hash >> 32) | 1 }

    private func first(_ hash: Int) -> Int { (hash >> 4 & (marks.count / Self.ways - 1)) * Self.ways }

    /// - Parameter most: how many are to be remembered.
    mutating func add(_ hash: Int, most: Int) {
        grow(to: most)
        clock &+= 1
        let first = first(hash)
        var oldest = first
        for place in first..<(first + Self.ways) {
            if marks[place].fingerprint == 0 {
                oldest = place
                break
            }
            if clock &- marks[place].addedAt > clock &- marks[oldest].addedAt { oldest = place }
        }
        marks[oldest] = Mark(fingerprint: Self.fingerprint(hash), addedAt: clock)
    }

    /// - Returns: whether the hash was remembered, among the last `most` that were added.
    mutating func remove(_ hash: Int, most: Int) -> Bool {
        guard !marks.isEmpty else { return false }
        let wanted = Self.fingerprint(hash)
        let first = first(hash)
        for place in first..<(first + Self.ways) where marks[place].fingerprint == wanted {
            let age = clock &- marks[place].addedAt
            marks[place] = Mark()
            return age < UInt32(clamping: most)
        }
        return false
    }

    /// A table that is too small is made anew, and what it remembered is forgotten: it doubles each time, so that this is
    /// rare.
    private mutating func grow(to most: Int) {
        guard most > marks.count else { return }
        var size = 64
        while size < most { size *= 2 }
        marks = ContiguousArray(repeating: Mark(), count: size)
    }
}
