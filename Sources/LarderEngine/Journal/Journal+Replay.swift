import Platform

extension Journal {
    /// Visits every commit group that counts, in order.
    ///
    /// For the start, and again at any time: of what this process wrote everything must be there. Writes nothing. What
    /// is visited is always a beginning of what was appended, cut between two groups; the report says where it ends and
    /// why. After damage the journal refuses to append until ``setAside(_:to:)``.
    /// - Parameter known: everything up to this sequence is durable elsewhere. A journal that begins later lacks its
    ///   first segments, which is damage too. Without it that goes unnoticed.
    /// - Throws: `newerFormat` before anything is visited; `io` possibly in the midst of it.
    func replay(known: UInt64 = .max, _ visit: JournalVisit) throws(LarderError) -> JournalReport {
        try withoutRemovals { () throws(LarderError) in try replayHeld(known: known, visit) }
    }

    /// As ``replay(known:_:)``, within ``withoutRemovals(_:)``.
    func replayHeld(known: UInt64 = .max, _ visit: JournalVisit) throws(LarderError) -> JournalReport {
        var pass: JournalReplay
        do throws(FileError) {
            pass = try JournalReplay(
                lock.withLock { segments }, known: known, readAheadBytes: readAheadBytes, files)
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

    /// Remembers what was found out.
    private func adopt(_ pass: JournalReplay) {
        lock.withLock {
            damage = pass.report.damage
            // Nothing is settled about files that were found until what is damaged was set aside.
            if isRead || damage != nil { return }
            isRead = true
            for end in pass.ends where end.segment.byteCount == nil {
                end.segment.byteCount = end.bytes
                end.segment.lastSequence = end.sequence
                end.segment.hasFrames = end.bytes > JournalFormat.segmentHeaderBytes
            }
            // Returned to after a failure of the machine: read no more, and removed with the others.
            for segment in pass.stale { segment.byteCount = segment.foundBytes }
            lastSequence = pass.report.lastSequence
            syncedSequence = min(syncedSequence, lastSequence)
            // Made, but without a header: as if they were not there. The next one takes the name.
            segments.removeAll { segment in pass.stillborn.contains { $0 === segment } }
            if let first = pass.stillborn.first { nextNumber = first.number }
        }
    }
}
