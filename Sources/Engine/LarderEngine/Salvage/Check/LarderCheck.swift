import LarderPlatform

/// Checks all files of a larder that no process has open for writing. Changes nothing: it opens no LevelDB, replays no
/// journal, and creates no file.
///
/// Memory use: that of a salvage, plus about 50 MiB for the comparison with the expiry index, plus one frame of the
/// journal.
package struct LarderCheck {
    private let directory: String
    /// The only database to check, besides the files that all databases share; nil for all databases.
    private let name: String?
    private let indexMaker: (any IndexMaker)?
    private let onProgress: (_ done: Int, _ total: Int) -> Void
    private let shouldStop: () -> Bool
    private var report = CheckReport()
    private var doneBytes = 0
    private var totalBytes = 0

    private init(
        _ directory: String, _ name: String?, _ indexMaker: (any IndexMaker)?,
        _ onProgress: @escaping (_ done: Int, _ total: Int) -> Void,
        _ shouldStop: @escaping () -> Bool
    ) {
        (self.directory, self.name, self.indexMaker) = (directory, name, indexMaker)
        (self.onProgress, self.shouldStop) = (onProgress, shouldStop)
    }

    /// - Parameters:
    ///   - directory: the directory of a larder, or of an image of a larder: see ``checkIsLarder(_:)``.
    ///   - name: the only database to check; nil for all databases.
    ///   - owned: the larder's directory, to check the owners and permissions of its files: those of an image's files
    ///     are its own.
    ///   - indexMaker: see ``EngineOptions/indexMaker``.
    ///   - onProgress: receives the numbers of bytes that are done, and of all bytes.
    ///   - shouldStop: called at intervals; returns whether to stop the check.
    /// - Throws: `closed` if it was stopped; `io` if the directory cannot be read; `noSuchDatabase`.
    package static func run(
        _ directory: String, database name: String? = nil, accessOf owned: String, indexMaker: (any IndexMaker)?,
        onProgress: @escaping (_ done: Int, _ total: Int) -> Void = { _, _ in },
        shouldStop: @escaping () -> Bool = { false }
    ) throws(LarderError) -> CheckReport {
        var check = LarderCheck(directory, name, indexMaker, onProgress, shouldStop)
        try check.run()
        var access = AccessCheck(directory: owned)
        access.run(&check.report)
        return check.report
    }

    /// Adds a database that could not be copied to the image that was checked.
    static func add(uncopied error: LarderError, to report: inout CheckReport) {
        let place = CheckProblem.place(ofDatabase: error.database ?? "")
        report.add(.damage, place, error.message, EpochCheck.remedy)
        report.damaged.insert(place)
    }

    private mutating func run() throws(LarderError) {
        let names: [String]
        names = try LarderError.wrapping("check") { () throws(FileError) in try FileSystem.list(directory) }
        var found: [String] = []
        for name in names where DatabaseCheck.isName(name) && (self.name ?? name) == name {
            switch DatabaseDirectory(directory + "/" + name) {
            case .database: found.append(name)
            case .absent: break
            case .foreign where name == DatabaseName.ledger:
                report.add(
                    .manual, CheckProblem.place(ofDatabase: name), Ledger.foreignMessage(directory + "/" + name),
                    "move it away: purges of tags, functions and origins cannot be stored until then")
            case .foreign:
                report.notes.append("\(directory)/\(name) is not a database of this larder; it is ignored")
            case .unreadable(let error): report.addUnseen(CheckProblem.place(ofDatabase: name), error)
            }
        }
        let missing = addMissing(found)
        if let name, found.isEmpty, report.problems.allSatisfy({ $0.place != CheckProblem.place(ofDatabase: name) }) {
            let what =
                name == DatabaseName.ledger
                ? "the larder has no ledger: no tag was purged, and no function or origin stored"
                : "there is no database '\(name)'"
            throw LarderError(.noSuchDatabase, what, operation: "check", database: name)
        }
        totalBytes = found.reduce(FileSystem.size(directory + "/JOURNAL")) {
            $0 + FileSystem.size(directory + "/" + $1)
        }
        let journal = JournalCheck.run(directory, &report)
        try advance(by: FileSystem.size(directory + "/JOURNAL"))
        let ledger = LedgerFacts(directory: directory, journal: journal)
        for name in found { try check(name, journal, ledger) }
        if name == nil { noteMissing(journal.databases.subtracting(missing)) }
    }

    /// Reports, and returns, the databases that the larder had when it was last used and that have no files now.
    private mutating func addMissing(_ found: [String]) -> [String] {
        // If this file cannot be read, the check of the journal reports that.
        let previous = (try? SequencesFile.read(in: directory))?.databases ?? []
        let missing = previous.filter { name in
            guard self.name == nil || [self.name, DatabaseName.ledger].contains(name), !found.contains(name),
                DatabaseName.isValid(name) || name == DatabaseName.ledger
            else { return false }
            return switch DatabaseDirectory(directory + "/" + name) {
            case .absent: true
            case .foreign: name != DatabaseName.ledger
            case .database, .unreadable: false
            }
        }.sorted()
        for name in missing {
            report.add(
                .damage, CheckProblem.place(ofDatabase: name),
                "its files are missing from \(name)/"
                    + (name == DatabaseName.ledger ? ", and with them purges of tags, functions and origins" : ""),
                "restore them, from a backup if necessary; --repair or the next start continues without them")
        }
        return missing
    }

    /// Names that the engine creates in the directory of every larder, and in no subdirectory.
    private static let ownNames = [SequencesFile.name, "JOURNAL", TimeKeeper.fileName]

    /// - Throws: `invalidArgument` if the directory can be read and is not that of a larder.
    static func checkIsLarder(_ directory: String) throws(LarderError) {
        guard let names = try? FileSystem.list(directory) else { return }
        guard ownNames.allSatisfy({ !names.contains($0) }) else { return }
        for name in names where DatabaseName.isValid(name) {
            switch DatabaseDirectory(directory + "/" + name) {
            case .database, .unreadable: return
            case .absent, .foreign: break
            }
        }
        let hint =
            names.contains(PointerFile.name)
            ? ": it looks like one database of the larder \(FileSystem.parent(directory))"
            : ": it has neither databases nor a journal"
        throw LarderError(.invalidArgument, "\(directory) is not a larder" + hint, operation: "check")
    }

    /// Adds a note for each database in `names` that has no directory. This is not a problem: the journal keeps the
    /// operations of a deleted database for a while.
    private mutating func noteMissing(_ names: Set<String>) {
        for name in names.sorted() where !FileSystem.exists(directory + "/" + name) {
            report.notes.append(Self.missingNote(name))
        }
    }

    /// Returns the text of the note about a database that exists only in the journal.
    static func missingNote(_ name: String) -> String {
        "the journal has operations of database '\(name)', whose directory is missing: if the database was not deleted "
            + "on purpose, restore the directory"
    }

    private mutating func check(
        _ name: String, _ journal: JournalCheck.End, _ ledger: LedgerFacts
    ) throws(LarderError) {
        if name != DatabaseName.ledger { report.databases += 1 }
        let before = doneBytes
        let size = FileSystem.size(directory + "/" + name)
        // The bytes of this database read so far. They may exceed the size of its files, because tables are compressed.
        var met = 0
        let total = totalBytes
        let onProgress = onProgress
        let database = DatabaseCheck(
            directory: directory + "/" + name, name: name, journal: journal, ledger: ledger,
            indexMaker: indexMaker,
            onBytes: { count in
                met += count
                onProgress(before + min(met, size), total)
            }, shouldStop: shouldStop)
        let entries = report.entries
        // Do not count the ledger's records, because they are not entries of users.
        defer { if name == DatabaseName.ledger { report.entries = entries } }
        do {
            try database.run(&report)
        } catch let error as LarderError where error.code == .closed {
            throw error
        } catch {
            report.addUnseen(CheckProblem.place(ofDatabase: name), error)
        }
        try advance(by: size)
    }

    private mutating func advance(by count: Int) throws(LarderError) {
        doneBytes += count
        onProgress(doneBytes, totalBytes)
        if shouldStop() { throw EpochCheck.stopped }
    }
}
