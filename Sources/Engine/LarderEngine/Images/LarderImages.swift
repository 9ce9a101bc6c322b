import LarderPlatform

/// Creates *images*: copies of all files of a larder in use, as of one instant. An image can be opened as a larder. It
/// contains every commit unit up to that instant, and no later one.
///
/// While an image is created, no checkpoint runs, and no database is purged or deleted. Commits continue; those after
/// the instant are not in the image.
///
/// Thread-safe: only constants. Lock order: every database's `openLock`, in the order of the table of databases; then
/// the checkpointer's turn.
final class LarderImages: Sendable {
    private let context: EngineContext
    private let table: DatabaseTable
    private let journal: CommitJournal
    private let checkpointer: Checkpointer
    private let pipeline: CommitPipeline

    init(
        context: EngineContext, table: DatabaseTable, journal: CommitJournal, checkpointer: Checkpointer,
        pipeline: CommitPipeline
    ) {
        (self.context, self.table, self.journal) = (context, table, journal)
        (self.checkpointer, self.pipeline) = (checkpointer, pipeline)
    }

    /// The maximum number of attempts. An attempt fails if a database is created during it.
    private static let attemptsMax = 100

    /// Creates an image in the directory `place`, which must not exist yet and must be on the larder's file system.
    /// - Parameter leavingOut: called with the damage of each database that cannot be copied. The image does not
    ///   contain these databases. If nil, such damage is thrown as an error.
    func make(
        at place: String, adding names: [String], leavingOut: ((LarderError) -> Void)? = nil
    ) throws(LarderError) {
        try pipeline.waitForAllCommits()
        try pipeline.requireInPlace("backup")
        // Shorten the journal first, because the image contains a copy of it. If the checkpoint fails, the journal
        // keeps the entries.
        try? checkpointer.checkpoint()
        for _ in 0..<Self.attemptsMax {
            if try attempt(place, names, leavingOut) { return }
            try? FileSystem.removeTree(place)
        }
        throw LarderError(.io, "databases are created continuously; try again later", operation: "backup")
    }

    /// - Returns: false if a database was created in the meantime, because its `openLock` is not held.
    private func attempt(
        _ place: String, _ others: [String], _ leavingOut: ((LarderError) -> Void)?
    ) throws(LarderError) -> Bool {
        let databases = table.all
        for database in databases { database.life.openLock.lock() }
        defer { for database in databases.reversed() { database.life.openLock.unlock() } }
        return try checkpointer.withTurn { () throws(LarderError) in
            try pipeline.rollBackWhatFailed("backup")
            do {
                try FileSystem.makeDirectory(place)
                // Copy this file before the journal is cut: the image must contain the part of the journal that the
                // file records as synced.
                try copy(JournalMarkFile.fileName, to: place)
                let cut = journal.cut(isRewrite: true)
                guard table.all.elementsEqual(databases, by: ===) else { return false }
                try journal.sync()
                var names: Set<String> = []
                for database in databases where try add(database, to: place, leavingOut) { names.insert(database.name) }
                try addJournal(upTo: cut, to: place)
                try addSequences(of: names, to: place)
                for name in [TimeKeeper.fileName] + others { try copy(name, to: place) }
                return true
            } catch let error as LarderError {
                throw error
            } catch {
                throw LarderError(.io, "\(error)" + Self.note(error), operation: "backup", underlying: error)
            }
        }
    }

    /// Returns a suffix for an error message that explains a full file system; an empty string for other errors.
    private static func note(_ error: any Error) -> String {
        guard let error = error as? FileError, error.isFullDisk else { return "" }
        return
            ": the file system is full, and a copy of the journal and of LevelDB's logs needs room; remove other files"
    }

    private func copy(_ name: String, to place: String) throws {
        guard let bytes = try FileSystem.read(context.directory + "/" + name, bytesMax: .max) else { return }
        try FileSystem.writeFile(place + "/" + name, bytes)
    }

    private func addJournal(upTo cut: CommitJournal.Cut?, to place: String) throws {
        try FileSystem.makeDirectory(place + "/JOURNAL")
        guard let cut else { return }
        for name in try FileSystem.list(context.directory + "/JOURNAL") {
            guard let number = JournalFormat.number(ofFile: name), number <= cut.segment else { continue }
            try copy("JOURNAL/" + name, to: place)
        }
    }

    /// Adds the file `SEQUENCES`, with only the databases of the image. The larder's file may also list databases that
    /// were created later.
    private func addSequences(of databases: Set<String>, to place: String) throws {
        guard var file = try? SequencesFile.read(in: context.directory) else {
            return try copy(SequencesFile.name, to: place)
        }
        file.databases = databases
        try FileSystem.writeFile(place + "/" + SequencesFile.name, Array(file.text.utf8))
    }

    /// - Returns: whether the image must list the database in `SEQUENCES`.
    private func add(_ database: Database, to place: String, _ leavingOut: ((LarderError) -> Void)?) throws -> Bool {
        do {
            if leavingOut == nil { try database.requireInPlace("backup") }
            try add(database, to: place, mayLackTables: leavingOut != nil)
            return database.exists
        } catch let error as LarderError where error.code == .damaged {
            guard let leavingOut else { throw error }
            try FileSystem.removeTree(place + "/" + database.name)
            leavingOut(error)
            return false
        }
    }

    /// Adds the files of a database, if it has any. Called with its `openLock` held.
    private func add(_ database: Database, to place: String, mayLackTables: Bool) throws {
        func damage(_ message: String, _ underlying: FilesDamage? = nil) -> LarderError {
            LarderError(
                .damaged, "\(message); salvage the database or set it aside first", operation: "backup",
                database: database.name, underlying: underlying)
        }
        let source = context.directory + "/" + database.name
        guard FileSystem.exists(source + "/" + PointerFile.name) else {
            guard case .database = DatabaseDirectory(source) else { return }
            throw damage("the database's \(PointerFile.name) is missing")
        }
        guard let bytes = try FileSystem.read(source + "/" + PointerFile.name) else { return }
        let pointer: PointerFile
        do throws(PointerFile.Defect) { pointer = try PointerFile(parsing: bytes) } catch {
            throw damage("the database's \(PointerFile.name) cannot be read (\(error))")
        }
        try FileSystem.makeDirectory(place + "/" + database.name)
        try copy(database.name + "/" + PointerFile.name, to: place)
        // Copy the file of tags too. It exists only if an earlier version of Larder has created it and the database was
        // not opened since.
        try copy(database.name + "/" + TagsFile.name, to: place)
        let epoch = "\(database.name)/\(pointer.epoch)"
        if pointer.isUnmade, !FileSystem.exists(context.directory + "/" + epoch) { return }
        do {
            let source = context.directory + "/" + epoch
            try EpochImage(source: source, place: place + "/" + epoch, mayLackTables: mayLackTables).make()
        } catch let error as FilesDamage {
            throw damage(error.message, error)
        }
    }
}
