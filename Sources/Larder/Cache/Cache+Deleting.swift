import LarderEngine
import LarderPlatform

extension Cache {
    // MARK: This database

    /// Deletes the database with its files and its policy. From then on every handle on it, its snapshots and its
    /// enumerations throw ``LarderError/Code/deleted``; opening the name again gives a new database. If nobody has
    /// written to the database, there is nothing to delete.
    public func delete() throws(LarderError) {
        try source.whileOpen("delete") { (engine) throws(LarderError) in
            // If the name was deleted and opened again meanwhile, the new database is not this one's to delete.
            guard try source.hasFiles(), try engine.database(name) === source.database else { return }
            _ = try engine.deleteDatabase(name)
        }
    }

    // MARK: By name

    /// Deletes a database with its files and its policy, even while it is open: from then on its handles, snapshots and
    /// enumerations throw ``LarderError/Code/deleted``.
    /// - Parameters:
    ///   - name: the database.
    ///   - directory: the larder. The default is ``defaultDirectory``.
    /// - Returns: whether there was such a database.
    /// - Throws: ``LarderError/Code/larderHeld`` when another process holds the larder.
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

    /// Deletes every database of a larder, one after the other, with `delete(named:directory:)`. The directory stays,
    /// and so do the files that `setAsideDamaged(named:directory:)` has put below `DAMAGED`.
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

    /// The names of the databases in a larder, in alphabetical order. Reads only the directory, so it also works while
    /// another process holds the larder. A directory that does not exist has no databases.
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

    /// Moves a damaged database to `DAMAGED` in its larder, and starts an empty one with the same policy, if that can
    /// still be read. A remedy for ``LarderError/Code/damaged``; `salvage(named:directory:)` loses less. If the
    /// larder's journal is damaged, this fails like every use of the larder: then run `larderd --dir` on it once, which
    /// sets the damage aside.
    /// - Throws: ``LarderError/Code/invalidArgument`` when the database is not damaged,
    ///   ``LarderError/Code/noSuchDatabase`` when there is none.
    public static func setAsideDamaged(named name: String, directory: String? = nil) throws(LarderError) {
        try DatabaseName.check(name, operation: "set aside")
        guard let engine = try existingLarder(directory) else {
            throw LarderError(
                .noSuchDatabase, "there is no larder at \(directory ?? defaultDirectory)", operation: "set aside",
                database: name)
        }
        defer { withExtendedLifetime(engine) {} }
        try engine.setAsideDamaged(name)
    }

    /// Copies everything that can still be read of a damaged database into new files, with everything that was written
    /// since, and keeps the damaged files below `DAMAGED` in its larder. No entry comes back in an older state: if only
    /// an older one can be read, the entry is gone. To find the damage this reads the whole database first; it takes as
    /// long as that and writing the rest. Meanwhile policy and readable entries stay in use; older snapshots and
    /// enumerations end.
    /// - Returns: what was kept and what may be lost.
    /// - Throws: ``LarderError/Code/invalidArgument`` when no damage is found, ``LarderError/Code/noSuchDatabase`` when
    ///   there is no such database, ``LarderError/Code/io`` when the disk fails or is full: then nothing has changed.
    public static func salvage(named name: String, directory: String? = nil) throws(LarderError) -> SalvageReport {
        try DatabaseName.check(name, operation: "salvage")
        guard let engine = try existingLarder(directory) else {
            throw LarderError(
                .noSuchDatabase, "there is no larder at \(directory ?? defaultDirectory)", operation: "salvage",
                database: name)
        }
        defer { withExtendedLifetime(engine) {} }
        return SalvageReport(try engine.salvageDamaged(name))
    }

    /// The larder's engine; nil if there is no such directory, which is not created only to find nothing in it.
    private static func existingLarder(_ directory: String?) throws(LarderError) -> Engine? {
        let directory = directory ?? defaultDirectory
        guard FileSystem.isDirectory(directory) else { return nil }
        return try Engine.open(directory, options: try CacheOptions().engineOptions())
    }
}
