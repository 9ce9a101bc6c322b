import LarderPlatform
import LarderTestSupport

@testable import LarderEngine

/// An operation that a test has appended to a journal.
struct JournalEntry: Hashable {
    var database = "0"
    var epoch: UInt64 = 1
    var key: [UInt8]
    /// The stored record; nil for a removal.
    var record: [UInt8]?
}

/// A group of commits that a test has appended to a journal.
struct JournalGroup: Hashable {
    var first: UInt64
    var last: UInt64
    var entries: [JournalEntry]

    /// Returns a group with the given sequence and up to `count` operations on some databases.
    static func random(_ sequence: UInt64, count: Int = 4, using random: inout SeededGenerator) -> JournalGroup {
        let entries = (0..<Int.random(in: 1...count, using: &random)).map { _ in
            JournalEntry(
                database: ["0", "books", "a.long-name_0"].randomElement(using: &random) ?? "0",
                epoch: UInt64.random(in: 1...2, using: &random),
                key: random.bytes(count: Int.random(in: 0...20, using: &random)),
                record: random.oneIn(4) ? nil : random.bytes(count: Int.random(in: 1...60, using: &random)))
        }
        return JournalGroup(first: sequence, last: sequence + UInt64(entries.count) - 1, entries: entries)
    }
}

extension JournalBatch {
    /// Replaces the content of the batch.
    func fill(_ group: JournalGroup) {
        clear()
        for (index, entry) in group.entries.enumerated() {
            let sequence = min(group.first + UInt64(index), group.last)
            select(
                database: entry.database, number: entry.database.hashValue ^ Int(entry.epoch), epoch: entry.epoch)
            entry.key.withUnsafeBytes { key in
                if let record = entry.record {
                    record.withUnsafeBytes { put(key: key, record: $0, sequence: sequence) }
                } else {
                    remove(key: key, sequence: sequence)
                }
            }
        }
    }
}

extension Journal {
    func append(_ group: JournalGroup) throws(FileError) {
        let batch = JournalBatch()
        batch.fill(group)
        try append(batch)
    }

    /// Returns the valid groups, identified by their last sequence.
    func groups(known: UInt64 = .max) throws -> (
        groups: [(last: UInt64, entries: [JournalEntry])], report: JournalReport
    ) {
        var groups: [(last: UInt64, entries: [JournalEntry])] = []
        func add(_ entry: JournalEntry, _ sequence: UInt64) {
            if groups.last?.last == sequence {
                groups[groups.count - 1].entries.append(entry)
            } else {
                groups.append((sequence, [entry]))
            }
        }
        let report = try replay(known: known) { bytes, sequence in
            var payload = JournalPayload(bytes)
            var (name, number) = ("", UInt64(0))
            while true {
                switch payload.next() {
                case .database(let database, let epoch):
                    (name, number) = (String(decoding: database, as: UTF8.self), epoch)
                case .put(let key, let record):
                    add(
                        JournalEntry(database: name, epoch: number, key: [UInt8](key), record: [UInt8](record)),
                        sequence)
                case .remove(let key):
                    add(JournalEntry(database: name, epoch: number, key: [UInt8](key), record: nil), sequence)
                case .end, .malformed: return
                }
            }
        }
        return (groups, report)
    }
}

/// A journal on a file system in memory, and the groups that were appended to it.
final class JournalHistory {
    let directory: TemporaryDirectory
    var groups: [JournalGroup] = []
    var random: SeededGenerator
    var nextSequence: UInt64 = 1

    init(seed: UInt64 = 1) throws {
        directory = try TemporaryDirectory(inMemory: true)
        random = SeededGenerator(seed: seed)
    }

    var path: String { directory.path + "/JOURNAL" }

    func open(
        segmentBytes: Int = 1 << 20, faults: JournalFaults? = nil, readAheadBytes: Int = 1 << 20
    ) throws -> Journal {
        try Journal(directory: path, segmentBytes: segmentBytes, faults: faults, readAheadBytes: readAheadBytes)
    }

    /// Returns the next group, without adding it to `groups`.
    func makeGroup(count: Int = 4) -> JournalGroup {
        let group = JournalGroup.random(nextSequence, count: count, using: &random)
        // Skips sequences, because changes of whole databases have sequences but write nothing to the journal.
        nextSequence = group.last + UInt64.random(in: 1...3, using: &random)
        return group
    }

    func append(_ count: Int, to journal: Journal) throws {
        for _ in 0..<count {
            let group = makeGroup()
            try journal.append(group)
            groups.append(group)
        }
    }

    /// Returns a journal with three unsynced segments of four groups each.
    static func threeSegments(seed: UInt64 = 1) throws -> JournalHistory {
        let history = try JournalHistory(seed: seed)
        let journal = try history.open()
        for _ in 0..<3 {
            try history.append(4, to: journal)
            _ = journal.rotate()
        }
        journal.close()
        return history
    }

    /// The paths of the segments, the oldest first.
    func segments() throws -> [String] { try Files.names(in: path, endingWith: ".log").map { path + "/" + $0 } }

    /// Compares the groups that a journal finds in its files with the appended groups.
    /// - Returns: the number of groups found; nil if they are not a prefix of the appended ones.
    func prefix(_ journal: Journal) throws -> (count: Int?, report: JournalReport) {
        let (found, report) = try journal.groups()
        let isPrefix =
            found.count <= groups.count
            && zip(found, groups).allSatisfy { $0.last == $1.last && $0.entries == $1.entries }
        return (isPrefix ? found.count : nil, report)
    }
}
