import LarderEngine
import LarderPlatform

/// Runs a trace on a larder with a disk limit, like an application that uses a cache: reads each key, and stores the
/// key if it is absent. Only this type knows how to limit the disk.
final class DiskProbe {
    /// The results of a run.
    struct Outcome {
        /// The hit ratio of the counted requests.
        let hitRatio: Double
        let entries: Int
        /// The maximum size of all files, as far as it was measured.
        let peakBytes: Int
        let writesPerSecond: Double
    }

    /// The size of values, which snappy does not compress, so that sizes on the disk are those of the values.
    static let valueBytes = 1024

    private let directory: String

    init(_ directory: String) { self.directory = directory }

    /// - Parameter start: the position of the first counted request. The requests before it only fill the larder.
    func run(_ trace: Trace, diskBytes: Int, memoryBytes: Int, from start: Int) throws -> Outcome {
        var options = StoreOptions.engine(memoryBytes: memoryBytes)
        options.diskBytesMax = diskBytes
        options.backgroundMaintenance = true
        let engine = try Engine.open(directory, options: options)
        defer { engine.shutdown() }
        let database = try engine.openDatabase("trace", policy: .never)
        let keys = (0..<trace.universe).map { Key(Keys.bytes($0)) }
        var (hits, peak, writes) = (0, 0, 0)
        let began = Clocks.monotonic()
        for (position, index) in trace.keys.enumerated() {
            let key = keys[Int(index)]
            if try isThere(key, database) {
                if position >= start { hits += 1 }
            } else {
                writes += 1
                var generator = SplitMix(seed: UInt64(index))
                let value = (0..<Self.valueBytes / 8).map { _ in generator.next() }
                try database.commit([key], loading: .none) { update in
                    value.withUnsafeBytes { update.put(0, payload: $0) }
                }
            }
            if position % 4096 == 0 {
                try Interruption.check()
                peak = max(peak, FileSystem.space(directory))
            }
        }
        let seconds = Clocks.monotonic() - began
        return Outcome(
            hitRatio: Double(hits) / Double(max(trace.keys.count - start, 1)),
            entries: try database.entryNumbers().fresh, peakBytes: peak,
            writesPerSecond: Double(writes) / max(seconds, 0.001))
    }

    private func isThere(_ key: Key, _ database: Database) throws -> Bool {
        var ticket = CommitTicket.none
        return try key.withBytes { key in
            try database.read(key, .mayBlock, ticket: &ticket) { _, _ in } == .hit
        }
    }
}
