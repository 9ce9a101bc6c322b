import LarderPlatform

extension Journal {
    /// Visits every valid commit group, in order.
    ///
    /// It may be called at the start, and later as long as everything that this process wrote still exists. Writes
    /// nothing. The valid groups are always the first ones appended; the report says where they end and why. After
    /// damage the journal refuses to append until ``setAside(_:to:)``.
    /// - Parameter known: everything up to this sequence is durable elsewhere. If the journal begins later, its first
    ///   segments are missing, which is damage too. Without this parameter, missing first segments are not detected.
    /// - Throws: `newerFormat` before any visit; `io` possibly between visits.
    func replay(known: UInt64 = .max, _ visit: JournalVisit) throws(LarderError) -> JournalReport {
        try withoutRemovals { () throws(LarderError) in try replayHeld(known: known, visit) }
    }

    /// ``replay(known:_:)`` within ``withoutRemovals(_:)``.
    func replayHeld(known: UInt64 = .max, _ visit: JournalVisit) throws(LarderError) -> JournalReport {
        var pass: JournalReplay
        do throws(FileError) {
            pass = try JournalReplay(
                lock.withLock { segments }, known: known, mark: marks?.known,
                readAheadBytes: readAheadBytes, files)
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

    /// Keeps the results of a replay.
    private func adopt(_ pass: JournalReplay) {
        lock.withLock {
            damage = pass.report.damage
            // After damage, the valid lengths stay unknown until the damaged segments were set aside.
            if isRead || damage != nil { return }
            isRead = true
            for end in pass.ends where end.segment.byteCount == nil {
                end.segment.byteCount = end.bytes
                end.segment.lastSequence = end.sequence
                end.segment.hasFrames = end.bytes > JournalFormat.segmentHeaderBytes
            }
            // A machine failure has restored these removed segments. They are not read again, and are removed with the
            // others.
            for segment in pass.stale { segment.byteCount = segment.foundBytes }
            lastSequence = pass.report.lastSequence
            syncedSequence = min(syncedSequence, lastSequence)
            // Segments without a header count as absent. The next segment takes the name.
            segments.removeAll { segment in pass.stillborn.contains { $0 === segment } }
            if let first = pass.stillborn.first { nextNumber = first.number }
        }
    }
}
