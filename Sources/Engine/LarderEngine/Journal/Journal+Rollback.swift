import LarderPlatform

extension Journal {
    /// Rolls back the last appended group, which could not be synced, by making it invalid.
    ///
    /// Belongs to the thread that appends. Takes an fsync.
    func rollBackLast(_ batch: JournalBatch) -> RollbackOutcome {
        guard let segment = lock.withLock({ segments.last }), segment.lastSequence == batch.lastSequence else {
            return .done
        }
        let offset = segment.liveBytes - batch.byteCount
        lock.withLock {
            segment.byteCount = offset
            // Not the number before the group's first sequence, because failed units and changes of whole databases
            // leave gaps.
            lastSequence = sequenceBefore
            segment.lastSequence = lastSequence
            segment.hasFrames = offset > JournalFormat.segmentHeaderBytes
            active = nil
        }
        if let failure = cutOff(segment, at: offset) { return .unlessProcessEnds(failure) }
        do throws(FileError) {
            // Try to sync again, because a machine failure must not restore the part that was cut off.
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

    /// The state of an appended group that must not be valid.
    enum RollbackOutcome {
        case done
        /// After a machine failure the group may be valid, unless something is appended before.
        case unlessMachineFails(FileError)
        /// For a later process the group may be valid, unless something is appended before.
        case unlessProcessEnds(FileError)
    }

    /// Makes a segment's bytes after `offset` permanently invalid, also for later processes. It truncates the file. If
    /// that fails, it overwrites the frame's header. If that fails too, it begins the next segment, whose header
    /// excludes the bytes. The caller must set the segment's length before. If the file stays longer, the segment
    /// accepts no more frames.
    /// - Returns: nil, or the reason why all of that failed.
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
