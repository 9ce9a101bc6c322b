extension Journal {
    /// Takes the last appended group back, which could not be synced: it counts no more.
    ///
    /// Belongs to the thread that appends.
    /// - Returns: nil; or why it may count all the same for a process that comes after this one, as long as this one appends
    ///   nothing more.
    func takeBackLast(_ batch: JournalBatch) -> FileError? {
        guard let segment = lock.withLock({ segments.last }), segment.lastSequence == batch.lastSequence else {
            return nil
        }
        let offset = segment.liveBytes - batch.byteCount
        lock.withLock {
            segment.byteCount = offset
            // Not the number before the group's first: units that failed, and changes of whole databases, leave gaps.
            lastSequence = sequenceBefore
            segment.lastSequence = lastSequence
            segment.hasFrames = offset > JournalFormat.segmentHeaderBytes
            active = nil
        }
        return cutOff(segment, at: offset)
    }

    /// Sees to it that what stands in a segment from `offset` on never counts, after the end of the process either: cuts
    /// it off; where that fails, makes the frame there none; where that fails too, begins the segment that says so. What
    /// counts of the segment has to be noted before. Where the file stays longer, the segment must take nothing more.
    /// - Returns: nil, or why all of that failed.
    func cutOff(_ segment: JournalSegment, at offset: Int) -> FileError? {
        do throws(FileError) {
            try files.truncate(segment.file, to: offset, path: segment.path)
            return nil
        } catch {
            lock.withLock { active = nil }
        }
        do throws(FileError) {
            let nothing = [UInt8](repeating: 0, count: JournalFormat.frameHeaderBytes)
            try files.write(nothing, to: segment.file, at: offset, path: segment.path)
            return nil
        } catch {
            do throws(FileError) {
                _ = try makeSegment()
                return nil
            } catch {
                return error
            }
        }
    }
}
