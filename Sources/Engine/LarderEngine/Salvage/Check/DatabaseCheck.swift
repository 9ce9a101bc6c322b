import LarderPlatform

/// Checks the files of one database.
struct DatabaseCheck {
    let directory: String
    let name: String
    let journal: JournalCheck.End
    let ledger: LedgerFacts
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
            onBytes: onBytes, shouldStop: shouldStop)
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
