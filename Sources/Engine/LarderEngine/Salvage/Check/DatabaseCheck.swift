import LarderLevelDBSalvage
import LarderPlatform

struct DatabaseCheck {
    let directory: String
    let name: String
    let journal: JournalCheck.End
    let ledger: LedgerFacts
    let indexMaker: (any IndexMaker)?
    let onBytes: (Int) -> Void
    let shouldStop: () -> Bool

    /// Whether a directory of this name may be a database, or the larder's ledger.
    static func isName(_ name: String) -> Bool { DatabaseName.isValid(name) || name == DatabaseName.ledger }

    private var place: String { CheckProblem.place(ofDatabase: name) }

    func run(_ report: inout CheckReport) throws {
        guard let pointer = try pointer(&report) else { return }
        try checkTags(pointer, &report)
        let epoch = EpochCheck(
            directory: directory + "/\(pointer.epoch)", place: place, pointer: pointer,
            journalKeys: journal.keys.isOverfull ? nil : journal.keys.hashes(of: name), now: journal.now,
            indexMaker: indexMaker, onBytes: onBytes, shouldStop: shouldStop)
        guard let needed = try epoch.run(&report) else { return }
        if journal.isLossProven(needed: needed) {
            report.add(
                .damage, place,
                "its LevelDB needs the journal up to sequence number \(needed), but the journal ends with "
                    + "\(journal.last)",
                "--repair continues with the journal's entries alone, and keeps the others in \(DamagedFiles.directoryName)/"
            )
        }
    }

    // MARK: POINTER

    private func pointer(_ report: inout CheckReport) throws -> PointerFile? {
        let path = directory + "/" + PointerFile.name
        let remedy =
            "--repair continues with its newest files under the default policy; entries without their own policy then count as "
            + "expired"
        guard !FileSystem.existsButIsNotRegularFile(path) else {
            report.add(
                .manual, place, "\(PointerFile.name) is not a file",
                "move it away and put \(PointerFile.name) back, or delete the database")
            return nil
        }
        guard let bytes = try FileSystem.read(path) else {
            report.add(.damage, place, "\(PointerFile.name) is missing", remedy)
            return nil
        }
        do throws(PointerFile.Defect) {
            return try PointerFile(parsing: bytes)
        } catch {
            switch error {
            case .newerFormat(let version):
                report.addNewer("\(place): \(PointerFile.name)", version, reads: PointerFile.formatVersion)
            case .malformed(let why):
                report.add(.damage, place, "\(PointerFile.name) cannot be read: \(why)", remedy)
            }
            return nil
        }
    }

    // MARK: TAGS, of earlier versions

    private func checkTags(_ pointer: PointerFile, _ report: inout CheckReport) throws {
        switch try TagsFile(directory: directory).read() {
        case .none where pointer.hasTagPurges && !ledger.mayHavePurges(of: name):
            report.add(
                .damage, place, "its tags were purged, but neither \(TagsFile.name) nor the ledger has these purges",
                "restore the missing file; otherwise --repair or the next start makes all entries with tags stale")
        case .none, .lines: break
        case .newer(let version): report.addNewer("\(place): \(TagsFile.name)", version, reads: TagsFile.formatVersion)
        case .damaged(let why):
            report.add(
                .damage, place, "\(TagsFile.name) cannot be read: \(why)",
                "a purge of a tag may be lost, so --repair or the next start makes all entries with tags stale")
        }
    }
}

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
