import LarderLevelDB
import LarderLevelDBSalvage
import LarderPlatform
import LarderTestSupport
import Testing

/// A closed database with a history, and its expected contents. Each value is written only once, so that an outdated
/// value can be recognized.
final class SalvageHistory {
    let workspace: Workspace
    private(set) var model: [[UInt8]: [UInt8]] = [:]
    /// All keys that were ever written.
    private(set) var everWritten: Set<[UInt8]> = []
    private var random: SeededGenerator
    private var stamp = 0
    let options: Options
    let keyCount: Int

    init(seed: UInt64, options: Options = Options(writeBufferBytes: 64 << 10), keyCount: Int = 600) throws {
        random = SeededGenerator(seed: seed)
        self.options = options
        self.keyCount = keyCount
        workspace = try Workspace(options)
    }

    var path: String { workspace.path }

    /// Tables on several levels with overwrites and removals, and a log.
    static func usual(seed: UInt64, options: Options = Options(writeBufferBytes: 64 << 10)) throws -> SalvageHistory {
        let history = try SalvageHistory(seed: seed, options: options)
        // LevelDB puts tables whose key ranges do not overlap into level 2.
        for part in 0..<6 {
            for first in stride(from: part * 150, to: part * 150 + 150, by: 50) {
                try history.write(Array(first..<(first + 50)), removing: 0, valueBytes: 300...500)
            }
            try history.reopen()
        }
        for _ in 0..<6 { try history.writeSome(30, removing: 4, valueBytes: 200...600) }
        // The snapshot keeps older versions of keys in the tables.
        let snapshot = try history.workspace.database.snapshot()
        for _ in 0..<6 { try history.writeSome(30, removing: 4, valueBytes: 200...600) }
        try history.workspace.database.compact(from: key(100), to: key(400))
        snapshot.close()
        try history.reopen()
        for _ in 0..<20 { try history.writeSome(30, removing: 4, valueBytes: 200...600) }
        try history.reopen()
        for _ in 0..<3 { try history.writeSome(30, removing: 4, valueBytes: 200...600) }
        try history.writeSome(150, removing: 4, valueBytes: 500...900)
        for _ in 0..<4 { try history.writeSome(5, removing: 4, valueBytes: 100...200) }
        try history.waitForMerges()
        try history.workspace.database.close()
        return history
    }

    /// Waits until LevelDB writes and merges no tables. Closing the database earlier would leave an unfinished table.
    private func waitForMerges() throws {
        while true {
            let counts = try (0..<7).map { try workspace.database.tableCount(level: $0) }
            // LevelDB merges level 0 if it has four tables, and keeps the log of entries that it is writing to a table.
            let logs = try workspace.files(endingWith: ".log").count
            if counts[0] < 4, logs == 1, try tables().count == counts.reduce(0, +) { return }
            usleep(1_000)
        }
    }

    func reopen() throws { try workspace.reopen(options) }

    func writeSome(_ count: Int, removing: Int, valueBytes: ClosedRange<Int>) throws {
        let numbers = (0..<count).map { _ in random.below(keyCount) }
        try write(Set(numbers).sorted(), removing: removing, valueBytes: valueBytes)
    }

    /// Writes one batch. On average, one of `removing` entries is a removal; none if `removing` is 0.
    func write(_ numbers: [Int], removing: Int, valueBytes: ClosedRange<Int>) throws {
        let batch = WriteBatch()
        for number in numbers {
            let name = key(number)
            everWritten.insert(name)
            if removing > 0, random.below(removing) == 0 {
                batch.delete(name)
                model[name] = nil
            } else {
                let value = self.value(of: valueBytes)
                batch.put(name, value)
                model[name] = value
            }
        }
        try workspace.database.write(batch)
    }

    private func value(of range: ClosedRange<Int>) -> [UInt8] {
        stamp += 1
        let count = range.lowerBound + random.below(range.count)
        var value = bytes("value \(stamp) ")
        while value.count < count { value.append(UInt8(truncatingIfNeeded: random.next())) }
        return value
    }

    // MARK: The files

    /// Returns the contents of all files, by name.
    func files() throws -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for name in try workspace.files() { files[name] = try Files.read("\(path)/\(name)") }
        return files
    }

    func tables() throws -> [String] { try workspace.files(endingWith: ".ldb") }
    func log() throws -> String { try #require(try workspace.files(endingWith: ".log").last) }
    func manifest() throws -> String {
        try #require(try workspace.files().first { $0.hasPrefix("MANIFEST-") })
    }

    func replace(_ name: String, _ bytes: [UInt8]) throws { try Files.write("\(path)/\(name)", bytes) }

    /// Returns the length of each log, to be used as its synced length.
    func synced() throws -> [UInt64: Int] {
        var synced: [UInt64: Int] = [:]
        for name in try workspace.files(endingWith: ".log") {
            synced[try #require(UInt64(name.dropLast(4)))] = try Files.read("\(path)/\(name)").count
        }
        return synced
    }
}

/// The entries and the report that a reader returned.
struct SalvageOutcome {
    var entries: [[UInt8]: [UInt8]] = [:]
    var removed: Set<[UInt8]> = []
    var keys: [[UInt8]] = []
    var report: SalvageReport

    init(path: String, options: SalvageOptions = SalvageOptions()) throws {
        let reader = try SalvageReader(path: path, options: options)
        report = reader.report
        while try reader.next() {
            let key = Array(reader.key)
            keys.append(key)
            if let value = reader.value { entries[key] = Array(value) } else { removed.insert(key) }
        }
        report = reader.report
    }

    /// Checks everything that must hold after any damage.
    /// - Parameter filesAreThere: whether all tables and logs exist, damaged or not. If a file and the manifest that
    ///   names it are missing, older values may be returned.
    func check(against history: SalvageHistory, filesAreThere: Bool = true, _ place: String) {
        let complaints = order() + wrong(history, filesAreThere)
        if let first = complaints.first { Issue.record("\(place): \(first), \(complaints.count) in all; \(report)") }
    }

    private func order() -> [String] {
        var complaints: [String] = []
        for (previous, next) in zip(keys, keys.dropFirst()) where !previous.lexicographicallyPrecedes(next) {
            complaints.append("keys do not ascend")
        }
        for (previous, next) in zip(report.lost, report.lost.dropFirst())
        where previous.upper?.lexicographicallyPrecedes(next.lower) != true {
            complaints.append("ranges do not ascend")
        }
        if report.entries != entries.count || report.removals != removed.count { complaints.append("counts are wrong") }
        return complaints
    }

    private func wrong(_ history: SalvageHistory, _ filesAreThere: Bool) -> [String] {
        var complaints: [String] = []
        for (key, value) in entries where history.model[key] != value {
            let isOld = history.model[key] != nil
            guard report.isComplete || isOld && filesAreThere else { continue }
            complaints.append("\(isOld ? "older" : "removed"): \(String(decoding: key, as: UTF8.self))")
        }
        for key in removed where history.model[key] != nil && (report.isComplete || filesAreThere) {
            complaints.append("not removed: \(String(decoding: key, as: UTF8.self))")
        }
        for key in history.model.keys where entries[key] == nil && (report.isComplete || filesAreThere) {
            if !report.lost.contains(where: { $0.contains(key) }) {
                complaints.append("silently lost: \(String(decoding: key, as: UTF8.self))")
            }
        }
        return complaints
    }
}
