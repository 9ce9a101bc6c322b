import LarderPlatform

/// Checks the files that all databases share: the journal and its marks, `SEQUENCES` and `TIME`.
enum JournalCheck {
    /// What the checks of the databases need to know about the journal.
    struct End {
        /// The last commit unit in the journal; 0 if there is none.
        var last: UInt64 = 0
        /// Whether ``last`` is known: the journal has segments or is damaged.
        var isKnown = false
        /// Whether damage or an incomplete write has cut off the end of the journal.
        var wasCut = false
        /// The content of `SEQUENCES`; nil if there is no such file, or it cannot be used.
        var sequences: SequencesFile?
        /// The last recorded time of the larder, in milliseconds since 1970; 0 if it is unknown.
        fileprivate(set) var now: Int64 = 0
        /// The names of the databases whose operations are in the journal.
        fileprivate(set) var databases: Set<String> = []
        /// The keys of the journal's operations.
        fileprivate(set) var keys = JournalKeys()

        /// Whether it is certain that the journal lost units up to `needed`, the last unit that a LevelDB needs.
        func isLossProven(needed: UInt64) -> Bool {
            guard isKnown || sequences == nil else { return false }
            return Sequences.isLossProven(
                needed: needed, end: isKnown ? last : .max, previous: sequences, wasCut: wasCut)
        }
    }

    static func run(_ directory: String, _ report: inout CheckReport) -> End {
        var end = End()
        end.sequences = sequences(directory, &report)
        end.now = time(directory, &report)
        let marks = marks(directory, end.sequences, &report)
        do {
            try replay(directory + "/JOURNAL", marks, &end, &report)
        } catch {
            report.addUnseen("the journal", error)
        }
        if let file = end.sequences, end.last > file.commitUnits {
            report.add(
                .damage, SequencesFile.name,
                "it reserves sequence numbers up to \(file.commitUnits), but the journal already has \(end.last)",
                "the next start or --repair reserves higher numbers")
        }
        return end
    }

    // MARK: Numbers and time

    private static func sequences(_ directory: String, _ report: inout CheckReport) -> SequencesFile? {
        do {
            return try SequencesFile.read(in: directory)
        } catch SequencesFile.Defect.newerFormat(let version) {
            report.addNewer(SequencesFile.name, version, reads: SequencesFile.formatVersion)
        } catch SequencesFile.Defect.malformed(let why) {
            report.add(
                .damage, SequencesFile.name, "it cannot be read: \(why)",
                "the next start or --repair estimates the used sequence numbers and rewrites it")
        } catch {
            report.addUnseen(SequencesFile.name, error)
        }
        return nil
    }

    /// Returns the time of the newer of the two marks in the file `TIME`; 0 if there is none.
    private static func time(_ directory: String, _ report: inout CheckReport) -> Int64 {
        do {
            guard let bytes = try FileSystem.read(directory + "/" + TimeKeeper.fileName) else { return 0 }
            if let mark = try TimeMark.newest(in: bytes, secondOffset: TimeKeeper.secondOffset) { return mark.time }
            report.add(
                .damage, TimeKeeper.fileName, "neither of its two copies of the larder's time can be read",
                "the larder's time follows the clock after the next start; --repair rewrites it")
        } catch SealedBlock.Defect.newerVersion(let version) {
            report.addNewer(TimeKeeper.fileName, version, reads: TimeMark.version)
        } catch {
            report.addUnseen(TimeKeeper.fileName, error)
        }
        return 0
    }

    private static func marks(
        _ directory: String, _ sequences: SequencesFile?, _ report: inout CheckReport
    ) -> JournalMarkFile? {
        guard let file = sequences else { return nil }
        let marks = JournalMarkFile(directory: directory, reserved: { 0 })
        switch marks.load(reserved: file.commitUnits) {
        case .done: return marks
        case .unusable(let why):
            report.add(
                .damage, JournalMarkFile.fileName, why,
                "if the journal lost its beginning or its end, that would not be detected; the next start or "
                    + "--repair recreates it")
        case .newerVersion(let version):
            report.addNewer(JournalMarkFile.fileName, version, reads: JournalMark.version)
        }
        return nil
    }

    // MARK: The journal

    private static func replay(
        _ path: String, _ marks: JournalMarkFile?, _ end: inout End, _ report: inout CheckReport
    ) throws {
        let names = FileSystem.exists(path) ? try FileSystem.list(path) : []
        let segments = names.compactMap { name in
            JournalFormat.number(ofFile: name).map {
                JournalSegment(number: $0, path: path + "/" + name, foundBytes: FileSystem.size(path + "/" + name))
            }
        }
        var replay = try JournalReplay(
            segments, known: .max, marks: marks, readAheadBytes: 1 << 20, JournalFiles(faults: nil))
        if let newer = replay.newerVersion {
            report.addNewer(
                "JOURNAL/" + JournalFormat.fileName(newer.segment), newer.version, reads: JournalFormat.version)
            return
        }
        var bad: (count: Int, first: String) = (0, "")
        var keys = JournalKeys()
        var databases: Set<String> = []
        try replay.run { payload, _ in
            var payload = JournalPayload(payload)
            var database = ""
            while true {
                switch payload.next() {
                case .database(let name, _):
                    database = String(decoding: name, as: UTF8.self)
                    databases.insert(database)
                case .put(let key, let record):
                    keys.add(key, database)
                    guard case .failure(let defect) = RecordHeader.read(record, nil) else { continue }
                    if bad.count == 0 {
                        bad.first = "\"\(printableKey(key))\" of database '\(database)' (\(EpochWalk.text(defect)))"
                    }
                    bad.count += 1
                case .remove(let key): keys.add(key, database)
                case .end, .malformed: return
                }
            }
        }
        keys.complete()
        end.keys = keys
        end.databases = databases
        let found = replay.report
        report.operations = found.operations
        end.last = found.lastSequence
        end.isKnown = found.segments > 0 || found.damage != nil
        end.wasCut = found.damage != nil || found.cut != nil
        if let damage = found.damage {
            report.add(
                .damage, "the journal", "\(damage)",
                "--repair or the next start continues with the part before that, and keeps the rest in "
                    + "\(DamagedFiles.directoryName)/")
        }
        if bad.count > 0 {
            report.add(
                .manual, "the journal", "\(bad.count) of its entries cannot be read, such as \(bad.first)",
                "if a newer Larder wrote them, read them with that; otherwise write them again or delete them")
        }
    }
}

/// The hashes of the keys of the journal's operations, by database. LevelDB's own entry of such a key is outdated, and
/// may lack its index key.
struct JournalKeys {
    private var hashes: [String: [UInt64]] = [:]
    private var count = 0
    /// Whether no hashes are kept, because there are too many keys.
    private(set) var isOverfull = false

    private static let countMax = 1 << 22

    fileprivate mutating func add(_ key: UnsafeRawBufferPointer, _ database: String) {
        guard !isOverfull else { return }
        hashes[database, default: []].append(IndexComparison.hash(KeyKind.record, key))
        count += 1
        guard count > Self.countMax else { return }
        isOverfull = true
        hashes = [:]
    }

    fileprivate mutating func complete() {
        for name in hashes.keys { hashes[name]?.sort() }
    }

    /// Returns the hashes of one database's keys, ascending.
    func hashes(of database: String) -> [UInt64] { hashes[database] ?? [] }
}
