import LarderPlatform

extension Journal {
    /// Moves the unusable part of a damaged journal to `place`, and leaves the part that is valid according to the
    /// report. Segments after the damaged one are moved. The damaged segment is copied and then truncated, or moved if
    /// nothing in it is valid. After that, groups can be appended to the journal again.
    ///
    /// A crash or an error during the call does not change the valid part. After an error, replay the journal again
    /// before the next call.
    /// - Parameter report: the report of the last replay. If it contains no damage, the call does nothing.
    /// - Parameter place: a directory on the same file system, created if it is missing.
    func setAside(_ report: JournalReport, to place: String) throws(FileError) {
        guard let damage = report.damage, lock.withLock({ self.damage == damage }) else { return }
        try FileSystem.makeDirectories(place)
        try withoutRemovals { () throws(FileError) in
            let isWholeUnusable = damage.offset <= JournalFormat.segmentHeaderBytes
            let concerned = lock.withLock {
                active = nil
                return segments.filter { $0.number >= damage.segment }
            }
            // Move the last segment first, so that there is never a gap between the remaining ones.
            for segment in concerned.reversed() where isWholeUnusable || segment.number > damage.segment {
                do throws(FileError) {
                    try files.rename(segment.path, to: name(of: segment, in: place))
                } catch {
                    if error.number != ENOENT { throw error }
                }
                lock.withLock { segments.removeAll { $0 === segment } }
            }
            try FileSystem.syncDirectory(place)
            try files.syncDirectory(directory)
            if !isWholeUnusable, let damaged = concerned.first {
                try copy(damaged.path, to: name(of: damaged, in: place))
                try FileSystem.syncDirectory(place)
                try files.truncate(fileAt: damaged.path, to: damage.offset)
                lock.withLock {
                    damaged.byteCount = damage.offset
                    // From now on, the segment ends with the last valid sequence.
                    damaged.lastSequence = report.lastSequence
                    damaged.hasFrames = damage.offset > JournalFormat.segmentHeaderBytes
                }
            }
            try FileSystem.syncDirectory(FileSystem.parent(place))
            marks?.noteLost(behind: report.lastSequence)
            lock.withLock {
                self.damage = nil
                isRead = false
            }
        }
        try readAgain()
    }

    private func name(of segment: JournalSegment, in place: String) -> String {
        place + "/" + JournalFormat.fileName(segment.number)
    }

    /// Copies a file and syncs the copy.
    private func copy(_ from: String, to: String) throws(FileError) {
        guard let reader = try JournalReader(number: 0, path: from, readAheadBytes: readAheadBytes) else {
            throw FileError(operation: "open", path: from, number: ENOENT)
        }
        let file = try files.create(to)
        defer { systemClose(file) }
        var offset = 0
        while offset < reader.fileBytes {
            let length = min(max(readAheadBytes, 4096), reader.fileBytes - offset)
            guard let bytes = try reader.bytes(at: offset, length) else { break }
            try files.write(bytes, to: file, at: offset, path: to)
            offset += length
        }
        try files.sync(file, path: to)
    }
}
