import LarderPlatform

extension Journal {
    /// Rolls back the last appended commit group, which could not be synced, by making its frame invalid.
    ///
    /// Called by the thread that appends. Takes the time of an fsync.
    func rollBackLast(_ batch: JournalBatch) -> RollbackOutcome {
        guard let segment = lock.withLock({ segments.last }), segment.lastSequence == batch.lastSequence else {
            return .done
        }
        let offset = segment.liveBytes - batch.byteCount
        lock.withLock {
            segment.byteCount = offset
            // Do not use the group's first sequence minus 1: failed commit units and changes of whole databases leave
            // gaps.
            lastSequence = sequenceBefore
            segment.lastSequence = lastSequence
            segment.hasFrames = offset > JournalFormat.segmentHeaderBytes
            active = nil
        }
        if let failure = cutOff(segment, at: offset) { return .unlessProcessEnds(failure) }
        do throws(FileError) {
            // Sync the change that has cut off the group, because a machine failure must not restore the group.
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

    /// The result of rolling back an appended group.
    enum RollbackOutcome {
        case done
        /// After a machine failure, the group may be valid again, unless another group was appended before the failure.
        case unlessMachineFails(FileError)
        /// The next process may find the group valid, unless this process appends another group before it terminates.
        case unlessProcessEnds(FileError)
    }

    /// Permanently invalidates a segment's bytes from `offset` on, also for later processes. Truncates the file. If
    /// that fails, overwrites the frame's header. If that fails too, begins the next segment, whose header excludes the
    /// bytes. The caller must set the segment's length first. If the file cannot be truncated, the segment accepts no
    /// more frames.
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
