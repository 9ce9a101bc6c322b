/// Random bytes for large values. They are copied from a pool, because generating them would take too long.
package enum Incompressible {
    private static let pool = {
        var random = SeededGenerator(seed: 1)
        return (0..<(3 << 17)).map { _ in random.next() }
    }()

    /// Returns up to 2 MiB of bytes that LevelDB cannot compress. Two values may share bytes at different offsets.
    package static func bytes(count: Int, _ random: inout SeededGenerator) -> [UInt8] {
        pool.withUnsafeBytes { pool in
            let start = random.below(pool.count - count)
            return Array(pool[start..<(start + count)])
        }
    }
}
