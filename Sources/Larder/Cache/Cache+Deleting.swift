import LarderEngine

extension Cache {
    // MARK: This database

    /// Deletes the database with its files and its policy. This and every other handle on it, its snapshots and
    /// enumerations throw ``LarderError/Code/deleted`` from then on; opening the name again gives a new database. Of a
    /// database that nobody has written to there is nothing to delete.
    public func delete() throws(LarderError) {
        try source.whileOpen("delete") { (engine) throws(LarderError) in
            // Of a name that was deleted and opened again meanwhile, the new database is not this one's to delete.
            guard try source.hasFiles(), try engine.database(name) === source.database else { return }
            _ = try engine.deleteDatabase(name)
        }
    }

    // MARK: By name

    /// Deletes a database with its files and its policy, also while it is open: its handles, snapshots and enumerations
    /// throw ``LarderError/Code/deleted`` from then on, and nobody's files vanish under their feet.
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

    /// Deletes every database of a larder, one after the other, as `delete(named:directory:)` does. The directory
    /// stays, and with it what `setAsideDamaged(named:directory:)` had set aside below `DAMAGED`.
    /// - Returns: the names of the databases that were deleted.
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

    /// The names of the databases in a larder, in alphabetical order. Looks at the directory alone, so it also answers
    /// while another process holds the larder; no larder at all has no databases.
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

    /// Moves a damaged database aside, below `DAMAGED` in its larder, and starts an empty one under the same policy, if
    /// that can still be read. A way to go on after ``LarderError/Code/damaged``; `salvage(named:directory:)` loses less. Where the
    /// damage is in the larder's journal, this fails like every use of the larder: `larderd --dir` on it, once, sets that aside.
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

    /// Brings what can still be read of a damaged database into new files, with everything that was written since, and keeps
    /// the damaged ones below `DAMAGED` in its larder. No entry comes back as it was earlier: where only an older state can be
    /// read, the entry is gone. Reads all of the database first, to find the damage; takes as long as that and writing what is
    /// left. Policy and entries stay in use meanwhile where they can be read; snapshots and iterations of before end.
    /// - Returns: what goes on and what may be lost.
    /// - Throws: ``LarderError/Code/invalidArgument`` when no damage is found, ``LarderError/Code/noSuchDatabase`` when there is
    ///   no such database, ``LarderError/Code/io`` when the disk refuses, a full one too: nothing has changed then.
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

    /// The larder's engine; nil where there is no such directory, which is not to be made only to find nothing in it.
    private static func existingLarder(_ directory: String?) throws(LarderError) -> Engine? {
        let directory = directory ?? defaultDirectory
        guard FileSystem.isDirectory(directory) else { return nil }
        return try Engine.open(directory)
    }
}
