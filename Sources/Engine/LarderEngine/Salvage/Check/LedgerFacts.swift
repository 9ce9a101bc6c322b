import LarderLevelDBSalvage
import LarderPlatform

/// Reads the ledger of a larder that no process has open. The ledger is the internal database of facts: functions,
/// origins, and purges of tags. Its tables are read at most once, for all databases.
///
/// Not thread-safe.
final class LedgerFacts {
    private let path: String
    private let journal: JournalCheck.End
    private let isAbsent: Bool
    private lazy var keys = read()

    /// - Parameter directory: the directory of the larder.
    init(directory: String, journal: JournalCheck.End) {
        path = directory + "/" + DatabaseName.ledger
        self.journal = journal
        isAbsent = if case .absent = DatabaseDirectory(path) { true } else { false }
    }

    /// Whether the database may have purges of tags: the ledger has some, or has a note that facts were lost, or cannot
    /// be read. A ledger that cannot be read is reported separately.
    func mayHavePurges(of database: String) -> Bool {
        if isAbsent { return false }
        let wanted = [TagFacts.key(database), Ledger.Loss.key]
        let inJournal = journal.keys.hashes(of: DatabaseName.ledger)
        let isInJournal = wanted.contains { key in
            inJournal.contains(key.withUnsafeBytes { IndexComparison.hash(KeyKind.record, $0) })
        }
        if isInJournal || journal.keys.isOverfull { return true }
        guard let keys else { return true }
        return wanted.contains { keys.contains($0) }
    }

    /// Returns the keys of the facts that ``mayHavePurges(of:)`` needs; nil if the ledger cannot be read.
    private func read() -> Set<[UInt8]>? {
        do {
            guard let bytes = try FileSystem.read(path + "/" + PointerFile.name) else { return nil }
            let epoch = path + "/\(try PointerFile(parsing: bytes).epoch)"
            var doubts: [String] = []
            let reader = try SalvageReader(path: epoch, options: try EpochSalvage.options(of: epoch, doubts: &doubts))
            var keys: Set<[UInt8]> = []
            while try reader.next() {
                guard reader.key.first == KeyKind.record else { continue }
                let key = Array(reader.key.dropFirst())
                if key == Ledger.Loss.key || TagFacts.isFloors(key) { keys.insert(key) }
            }
            return reader.report.isUndamaged ? keys : nil
        } catch {
            return nil
        }
    }
}
