/// Random bytes for large values, at the cost of a copy.
package enum Incompressible {
    private static let pool = {
        var random = SeededGenerator(seed: 1)
        return (0..<(3 << 17)).map { _ in random.next() }
    }()

    /// Bytes that LevelDB cannot compress, up to 2 MiB of them. Two values may have the same bytes in other places.
    package static func bytes(count: Int, _ random: inout SeededGenerator) -> [UInt8] {
        pool.withUnsafeBytes { pool in
            let start = random.below(pool.count - count)
            return Array(pool[start..<(start + count)])
        }
    }
}
