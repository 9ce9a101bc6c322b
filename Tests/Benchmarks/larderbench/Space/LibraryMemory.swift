import Larder
import LarderPlatform

/// The memory of entries in the library. Each measurement has a process of its own, because the C library keeps freed
/// memory: a second measurement in the same process would use memory of the first one.
struct LibraryMemory {
    /// The word after `larderbench` with which a child process is started.
    static let name = "library-memory"
    static let subject = "Larder, in the library, 4GiB memory tier"

    let directory: String
    let count: Int
    let valueBytes: Int
    let hasDeadlines: Bool

    private var words: [String] { [Self.name, directory, "\(count)", "\(valueBytes)", "\(hasDeadlines)"] }

    /// Stores the entries in a child process.
    /// - Parameter program: the path of this program.
    /// - Returns: the resident bytes of each entry, without those of its key and value.
    func bytesPerEntry(_ program: String) throws(BenchError) -> Double {
        let process = try ChildProcess([program] + words, outputPath: directory + ".log")
        defer { unlink(process.outputPath) }
        while !process.hasEnded {
            try Interruption.check()
            Clocks.sleep(0.05)
        }
        let figures = process.output.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
        guard figures.count == 2 else { throw BenchError("no figures: \(process.lastLines)") }
        return (figures[1] - figures[0]) * 1_048_576 / Double(count) - Double(Keys.byteCount + valueBytes)
    }

    /// The child process: stores the entries, and prints the memory in MiB before and after that.
    static func main(_ words: some Collection<String>) throws(BenchError) {
        let words = Array(words)
        guard words.count == 4, let count = Int(words[1]), let valueBytes = Int(words[2]) else {
            throw BenchError("usage: \(name) DIRECTORY COUNT BYTES DEADLINES")
        }
        do {
            try LibraryMemory(
                directory: words[0], count: count, valueBytes: valueBytes, hasDeadlines: words[3] == "true"
            ).fill()
        } catch {
            throw BenchError("\(error)")
        }
    }

    private func fill() throws {
        var options = CacheOptions()
        options.memoryBytes = 4 << 30
        let cache = try Cache(named: "bench", policy: .never, directory: directory, options: options)
        defer { cache.close() }
        let policy: EntryPolicy = hasDeadlines ? .seconds(86_400) : .database
        let values = Values(bytes: valueBytes)
        Clocks.settle(Clocks.ownProcessor)
        let empty = Self.ownMiB
        for first in stride(from: 0, to: count, by: 1000) {
            try cache.batch { batch in
                for index in first..<min(first + 1000, count) {
                    try batch.setBytes(values[index], forKey: Keys.text(index), policy: policy)
                }
            }
        }
        // Without this, the entries of the last checkpoint interval would take more memory, as long as they are new.
        try cache.snapshot().close()
        Clocks.settle(Clocks.ownProcessor)
        try Clocks.settleMemory { Self.ownMiB }
        print(empty, Self.ownMiB)
    }

    private static var ownMiB: Double { ProcessMemory.measure().map { Double($0.ownBytes) / 1_048_576 } ?? .nan }
}
