import LarderEngine
import LarderPlatform

extension Cache {
    // MARK: This database

    /// Deletes the database with its files and its policy. Afterwards all handles, snapshots and enumerations of the
    /// database throw ``LarderError/Code/deleted``. Opening the name again creates a new database. Does nothing if the
    /// database was never written to.
    public func delete() throws(LarderError) {
        try source.whileOpen("delete") { (engine) throws(LarderError) in
            // If the database was deleted and created again in the meantime, keep the new database.
            guard try source.hasFiles(), try engine.database(name) === source.database else { return }
            _ = try engine.deleteDatabase(name)
        }
    }

    // MARK: By name

    /// Deletes a database with its files and its policy, even while it is open. Afterwards its handles, snapshots and
    /// enumerations throw ``LarderError/Code/deleted``.
    /// - Parameters:
    ///   - name: the name of the database.
    ///   - directory: the larder's directory. The default is ``defaultDirectory``.
    /// - Returns: whether there was such a database.
    /// - Throws: ``LarderError/Code/larderHeld`` if another process has the larder open.
    @discardableResult
    public static func delete(named name: String, directory: String? = nil) throws(LarderError) -> Bool {
        try DatabaseName.check(name, operation: "delete")
        guard let engine = try existingLarder(directory) else { return false }
        defer { withExtendedLifetime(engine) {} }
        do throws(LarderError) {
            _ = try engine.deleteDatabase(name)
        } catch {
            guard error.code == .noSuchDatabase || error.code == .deleted else { throw error }
            return false
        }
        return true
    }

    /// Deletes all databases of a larder, one at a time, with `delete(named:directory:)`. Keeps the directory, and the
    /// files that `setAsideDamaged(named:directory:)` has moved to its subdirectory `DAMAGED`.
    /// - Returns: the names of the deleted databases.
    @discardableResult
    public static func deleteAll(directory: String? = nil) throws(LarderError) -> [String] {
        guard let engine = try existingLarder(directory) else { return [] }
        defer { withExtendedLifetime(engine) {} }
        var deleted: [String] = []
        for database in engine.databases {
            do throws(LarderError) {
                _ = try engine.deleteDatabase(database.name)
                deleted.append(database.name)
            } catch {
                guard error.code == .noSuchDatabase || error.code == .deleted else { throw error }
            }
        }
        return deleted
    }

    /// Returns the names of the databases in a larder, in alphabetical order. Reads only the directory, so the call
    /// also works while another process has the larder open. A missing directory has no databases.
    public static func databases(in directory: String? = nil) throws(LarderError) -> [String] {
        let directory = directory ?? defaultDirectory
        guard FileSystem.isDirectory(directory) else { return [] }
        do throws(FileError) {
            return try FileSystem.list(directory)
                .filter { DatabaseName.isValid($0) && FileSystem.isDirectory(directory + "/" + $0) }.sorted()
        } catch {
            throw LarderError(.io, error.description, operation: "list databases", underlying: error)
        }
    }

    /// Moves the files of a damaged database to the subdirectory `DAMAGED` of its larder, and creates an empty
    /// database. Keeps the policy if it is readable. Use this call after ``LarderError/Code/damaged``, or
    /// `salvage(named:directory:)`, which loses fewer entries. If the larder's journal is damaged, this call fails like
    /// any use of the larder. In that case run `larderd --dir` once: it moves the damaged journal files aside.
    /// - Throws: ``LarderError/Code/invalidArgument`` if the database is not damaged,
    ///   ``LarderError/Code/noSuchDatabase`` if there is none.
    public static func setAsideDamaged(named name: String, directory: String? = nil) throws(LarderError) {
        let engine = try larder(with: name, directory, "set aside")
        defer { withExtendedLifetime(engine) {} }
        try engine.setAsideDamaged(name)
    }

    /// Copies all readable entries of a damaged database to new files, including entries that are not in the database's
    /// files yet. Keeps the damaged files in the subdirectory `DAMAGED` of the larder. No entry returns to an older
    /// state: if only an older state is readable, the entry is dropped. The call first reads the whole database to find
    /// the damage, and then writes the new files. Meanwhile the policy and the readable entries stay in use. Snapshots
    /// and enumerations from before the call can no longer be read.
    /// - Returns: a report of the kept entries, and of entries that may be lost.
    /// - Throws: ``LarderError/Code/invalidArgument`` if no damage is found, ``LarderError/Code/noSuchDatabase`` if
    ///   there is no such database, ``LarderError/Code/io`` if the disk fails or is full. Nothing is changed in these
    ///   cases.
    public static func salvage(named name: String, directory: String? = nil) throws(LarderError) -> SalvageReport {
        let engine = try larder(with: name, directory, "salvage")
        defer { withExtendedLifetime(engine) {} }
        return SalvageReport(try engine.salvageDamaged(name))
    }

    /// Returns the engine of the larder that has a damaged database, or throws ``LarderError/Code/noSuchDatabase``.
    private static func larder(with name: String, _ directory: String?, _ operation: String) throws(LarderError)
        -> Engine
    {
        try DatabaseName.check(name, operation: operation)
        if let engine = try existingLarder(directory) { return engine }
        throw LarderError(
            .noSuchDatabase, "there is no larder at \(directory ?? defaultDirectory)", operation: operation,
            database: name)
    }

    /// Returns the larder's engine, or nil if the directory is no larder. Creates nothing in it.
    private static func existingLarder(_ directory: String?) throws(LarderError) -> Engine? {
        let directory = directory ?? defaultDirectory
        guard FileSystem.isDirectory(directory), Engine.isLarder(directory) else { return nil }
        return try Engine.open(directory, options: try CacheOptions().engineOptions())
    }
}

/// The result of salvaging a damaged database: what was kept, and what may be lost.
public struct SalvageReport: Hashable, Sendable, CustomStringConvertible {
    /// The number of entries that were kept, including expired ones that had not been swept.
    public let entries: Int
    /// The number of parts of files that could not be read.
    public let unreadablePieces: Int
    /// The total length of the unreadable parts in bytes, as far as it is known.
    public let unreadableBytes: Int
    /// The first 16 key ranges that may have lost entries, described for people.
    public let lostKeys: [String]
    /// The number of all key ranges that may have lost entries.
    public let lostKeyRanges: Int
    /// Whether it was known which files are current. False if LevelDB's manifest is lost. Then files that may be
    /// obsolete are ignored, so that no overwritten or removed entry comes back; their keys are in ``lostKeys``.
    public let isComplete: Bool
    /// Possible losses, described for people; empty if there are none. For example, if the record of a log's length is
    /// damaged, it is unknown whether LevelDB's log is complete.
    public let doubts: [String]
    /// The directory with the damaged files; nil if they could not be kept.
    public let evidence: String?
    /// The whole report as text.
    public let description: String

    init(_ summary: SalvageSummary) {
        entries = summary.entries
        unreadablePieces = summary.pieces
        unreadableBytes = summary.bytes
        lostKeys = summary.lost
        lostKeyRanges = summary.lostCount
        isComplete = summary.isComplete
        doubts = summary.doubts
        evidence = summary.place
        description = summary.description
    }
}
