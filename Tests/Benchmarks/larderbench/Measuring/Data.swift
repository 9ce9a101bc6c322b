import LarderPlatform

/// Keys in the format of redis-benchmark with `-r`: 16 bytes.
enum Keys {
    static let byteCount = 16

    static func text(_ index: Int) -> String {
        let digits = String(index)
        return "key:" + String(repeating: "0", count: max(0, 12 - digits.count)) + digits
    }

    static func bytes(_ index: Int) -> [UInt8] { Array(text(index).utf8) }
}

/// Values of one size that snappy compresses by about half, like many real values. They are the same in every run.
final class Values: Sendable {
    private static let poolCount = 512
    /// The largest size: a reply must fit into the read buffer.
    static let bytesMax = 65_536

    let byteCount: Int
    private let pool: [UInt8]

    init(bytes: Int) {
        var generator = SplitMix(seed: 42)
        byteCount = bytes
        var pool: [UInt8] = []
        for _ in 0..<Self.poolCount {
            let random = (0..<(bytes + 1) / 2).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            pool += (random + random).prefix(bytes)
        }
        self.pool = pool
    }

    subscript(index: Int) -> [UInt8] { withValue(index) { [UInt8]($0) } }

    func withValue<Result>(_ index: Int, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        let start = (index & (Self.poolCount - 1)) * byteCount
        return try pool.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[start..<start + byteCount])) }
    }

    /// Copies a value to `place`, which has `byteCount` bytes.
    func copy(_ index: Int, to place: UnsafeMutableRawPointer) {
        withValue(index) { if let start = $0.baseAddress { place.copyMemory(from: start, byteCount: $0.count) } }
    }
}
