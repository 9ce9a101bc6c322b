extension Journal {
    /// Takes the last appended group back, which could not be synced: it counts no more.
    ///
    /// Belongs to the thread that appends.
    func takeBackLast(_ batch: JournalBatch) {
        guard let segment = lock.withLock({ segments.last }), segment.lastSequence == batch.lastSequence else { return }
        let offset = segment.liveBytes - batch.byteCount
        // If the file stays longer, the next segment says that the rest does not count.
        try? files.truncate(segment.file, to: offset, path: segment.path)
        lock.withLock {
            segment.byteCount = offset
            // Not the number before the group's first: units that failed, and changes of whole databases, leave gaps.
            lastSequence = sequenceBefore
            segment.lastSequence = lastSequence
            segment.hasFrames = offset > JournalFormat.segmentHeaderBytes
            active = nil
        }
    }
}
