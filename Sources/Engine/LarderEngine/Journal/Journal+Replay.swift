import LarderPlatform

extension Journal {
    /// Visits every valid commit group, in order.
    ///
    /// May be called at the start, and later as long as no frame of this process was lost. Writes nothing. All valid
    /// groups precede the first invalid one. The report contains the end of the valid part, and why it ends there. If
    /// the report contains damage, appending fails until ``setAside(_:to:)`` was called.
    /// - Parameter known: the last sequence (number of a commit unit) up to which everything is in LevelDB. If the
    ///   journal begins later, its first segments are missing, which is damage too. Without this parameter, missing
    ///   first segments are not detected.
    /// - Parameter onOpened: called when the segments are open. From then on, groups may be appended to new segments.
    ///   These groups are not visited.
    /// - Throws: `newerFormat` before any visit; `io` possibly after some visits.
    func replay(
        known: UInt64 = .max, onOpened: () -> Void = {}, _ visit: JournalVisit
    ) throws(LarderError) -> JournalReport {
        try withoutRemovals { () throws(LarderError) in try replayHeld(known: known, onOpened: onOpened, visit) }
    }

    /// Does the same as ``replay(known:onOpened:_:)``. Called within ``withoutRemovals(_:)``.
    func replayHeld(
        known: UInt64 = .max, onOpened: () -> Void = {}, _ visit: JournalVisit
    ) throws(LarderError) -> JournalReport {
        var pass: JournalReplay
        do throws(FileError) {
            pass = try JournalReplay(
                lock.withLock { segments }, known: known, marks: marks, readAheadBytes: readAheadBytes, files)
            onOpened()
            if pass.newerVersion == nil {
                try pass.run(visit)
                adopt(pass)
            }
        } catch {
            throw LarderError(.io, error.description, operation: "read the journal", underlying: error)
        }
        guard let newer = pass.newerVersion else { return pass.report }
        throw LarderError(
            .newerFormat,
            "\(JournalFormat.fileName(newer.segment)) was written by a newer version of Larder (journal version "
                + "\(newer.version), this one reads \(JournalFormat.version))",
            operation: "read the journal")
    }

    /// Takes over the results of a replay: the damage, and the valid length of each segment.
    private func adopt(_ pass: JournalReplay) {
        lock.withLock {
            damage = pass.report.damage
            // After damage, the valid lengths stay unknown until the damaged segments are set aside.
            if isRead || damage != nil { return }
            isRead = true
            for end in pass.ends where end.segment.byteCount == nil {
                end.segment.byteCount = end.bytes
                end.segment.lastSequence = end.sequence
                end.segment.hasFrames = end.bytes > JournalFormat.segmentHeaderBytes
            }
            // A machine failure has undone the removal of these segments. They are not read; the next removal includes
            // them.
            for segment in pass.stale { segment.byteCount = segment.foundBytes }
            lastSequence = pass.report.lastSequence
            syncedSequence = min(syncedSequence, lastSequence)
            // Ignore segments without a valid header. The next new segment takes the number of the first ignored one.
            segments.removeAll { segment in pass.headerless.contains { $0 === segment } }
            if let first = pass.headerless.first { nextNumber = first.number }
        }
    }
}
