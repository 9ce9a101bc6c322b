import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let lcsPlanners: Planners = [.lcs: run]

    private struct LCSOptions {
        var length = false
        var ranges = false
        var withLength = false
        var least: Int64 = 0

        init(_ words: CallWords) throws(CommandError) {
            var options = OptionReader(words, from: 3)
            while let name = options.next() {
                switch name {
                case "len": length = true
                case "idx": ranges = true
                case "withmatchlen": withLength = true
                case "minmatchlen": least = try words.integer(try options.value())
                default: throw .syntax
                }
            }
            if length, ranges {
                throw CommandError("ERR If you want both the length and indexes, please just use IDX.")
            }
        }
    }

    @Sendable private static func run(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let options = try LCSOptions(words)
        let most = words.valueBytesMax
        return .records([try words.key(1), try words.key(2)]) {
            cells($0[0], $0[1])
        } reply: { (records, replies) throws(CommandError) in
            let values = records.map { $0.map { Array($0.payload) } ?? [] }
            // As in Redis, the size of the table is limited to the length of the longest allowed value.
            guard cells(values[0].count, values[1].count) <= most / MemoryLayout<UInt32>.size else {
                throw CommandError("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
            }
            reply(CommonSequence(values[0], values[1]), options, &replies)
        }
    }

    /// The number of cells of the table for two values of these lengths. It cannot overflow, because values have less
    /// than 2^31 bytes.
    private static func cells(_ first: Int, _ second: Int) -> Int { (first + 1) * (second + 1) }

    private static func reply(_ table: CommonSequence, _ options: LCSOptions, _ replies: inout ReplyBuffer) {
        if options.length { return replies.integer(table.length) }
        guard options.ranges else { return replies.bulk(table.trace().bytes) }
        let ranges = table.trace().ranges.filter { Int64($0.count) >= options.least }
        replies.map(count: 2)
        replies.bulk("matches")
        replies.array(count: ranges.count)
        for range in ranges {
            replies.array(count: options.withLength ? 3 : 2)
            for start in [range.first, range.second] {
                replies.array(count: 2)
                replies.integer(start)
                replies.integer(start + range.count - 1)
            }
            if options.withLength { replies.integer(range.count) }
        }
        replies.field("len", table.length)
    }
}

/// The longest common subsequence of two values. Computed with a table, which contains the length of this subsequence
/// for each pair of prefixes of the values.
struct CommonSequence {
    /// A series of bytes that both values contain, and its position in each value.
    struct Range: Equatable {
        var first: Int
        var second: Int
        var count: Int
    }

    private let first: [UInt8]
    private let second: [UInt8]
    /// The table in row-major order. The cell in row i and column j is the length for the first i bytes of `first` and
    /// the first j bytes of `second`.
    private let lengths: [UInt32]

    init(_ first: [UInt8], _ second: [UInt8]) {
        self.first = first
        self.second = second
        let width = second.count + 1
        var lengths = [UInt32](repeating: 0, count: (first.count + 1) * width)
        lengths.withUnsafeMutableBufferPointer { lengths in
            second.withUnsafeBufferPointer { second in
                for row in 1..<max(1, first.count + 1) {
                    let byte = first[row - 1]
                    // Row 0 and column 0 are for empty prefixes. So each cell computed here has neighbours above and to
                    // the left.
                    for column in 1..<max(1, width) {
                        let place = row * width + column
                        lengths[place] =
                            second[column - 1] == byte
                            ? lengths[place - width - 1] + 1 : max(lengths[place - width], lengths[place - 1])
                    }
                }
            }
        }
        self.lengths = lengths
    }

    var length: Int { Int(lengths[lengths.count - 1]) }

    /// Returns the bytes of the subsequence, and the ranges in both values, from the last range to the first. If there
    /// are several solutions, returns the same one as Redis.
    func trace() -> (bytes: [UInt8], ranges: [Range]) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(length)
        var ranges: [Range] = []
        var open: Range?
        let width = second.count + 1
        var (row, column) = (first.count, second.count)
        while row > 0, column > 0 {
            if first[row - 1] == second[column - 1] {
                bytes.append(first[row - 1])
                row -= 1
                column -= 1
                // Extend the current range to the left. A range ends where the path through the table is not diagonal.
                open = Range(first: row, second: column, count: (open?.count ?? 0) + 1)
            } else {
                if let range = open { ranges.append(range) }
                open = nil
                let isUp = lengths[(row - 1) * width + column] > lengths[row * width + column - 1]
                if isUp { row -= 1 } else { column -= 1 }
            }
        }
        if let range = open { ranges.append(range) }
        return (bytes.reversed(), ranges)
    }
}
