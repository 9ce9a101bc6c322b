import Platform

extension Journal {
    /// Rolls the last appended group back, which could not be synced: it counts no more.
    ///
    /// Belongs to the thread that appends. Takes an fsync.
    func rollBackLast(_ batch: JournalBatch) -> RollbackOutcome {
        guard let segment = lock.withLock({ segments.last }), segment.lastSequence == batch.lastSequence else {
            return .done
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
        if let failure = cutOff(segment, at: offset) { return .unlessProcessEnds(failure) }
        do throws(FileError) {
            // What failed once may succeed now: and what was cut off is not to come back with a failure of the machine.
            if let next = lock.withLock({ active }) {
                try files.sync(next.file, path: next.path)
                try files.syncDirectory(directory)
            } else {
                try files.sync(segment.file, path: segment.path)
            }
            return .done
        } catch {
            return .unlessMachineFails(error)
        }
    }

    /// What has become of a group that was appended, and is not to count.
    enum RollbackOutcome {
        case done
        /// As long as nothing more is appended, it may count after a failure of the machine.
        case unlessMachineFails(FileError)
        /// As long as nothing more is appended, it may count for a process that comes after this one.
        case unlessProcessEnds(FileError)
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
