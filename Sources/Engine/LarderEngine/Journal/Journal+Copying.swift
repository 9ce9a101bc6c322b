import LarderPlatform

extension Journal {
    /// Replaces each segment whose fsync failed by a synced copy. The copy is read from the page cache. Call this
    /// before anything relies on the durability of frames in these segments or later ones, and within
    /// ``withoutRemovals(_:)``.
    ///
    /// After a failed fsync, the system treats the pages as written, although they are perhaps not on the disk. So
    /// another fsync would succeed without writing them; only a new file helps. Called by the thread that appends. May
    /// take long.
    /// - Throws: if a copy cannot be made, or the page cache has lost bytes. Then the segment is unchanged.
    func copyUnsynced() throws(FileError) {
        let concerned = lock.withLock { segments.filter { $0.syncFailure != nil && $0 !== active } }
        for segment in concerned { try copy(segment) }
    }

    /// Called with `removing` held.
    private func copy(_ segment: JournalSegment) throws(FileError) {
        let (number, bytes) = lock.withLock {
            stagedCount += 1
            return (stagedCount, segment.liveBytes)
        }
        // After a crash, the next start removes files with such names.
        let path = directory + "/" + StagedFrame.name(number)
        let file = try files.create(path)
        let copy = JournalSegment(number: segment.number, path: segment.path, file: file)
        do throws(FileError) {
            try files.willRead(segment.path)
            let reader = try JournalReader(
                number: segment.number, path: segment.path, readAheadBytes: readAheadBytes)
            guard let reader else { throw FileError(operation: "read", path: segment.path, number: ENOENT) }
            try write(reader, upTo: bytes, to: file, path)
            try files.sync(file, path: path)
            try files.rename(path, to: segment.path)
        } catch {
            try? files.unlink(path)
            throw error
        }
        lock.withLock { replace(segment, by: copy, bytes) }
        try files.syncDirectory(directory)
        lock.withLock {
            copy.isNameSynced = true
            copy.syncFailure = nil
        }
    }

    /// Copies a segment's bytes, and verifies their checksums.
    private func write(_ reader: JournalReader, upTo bytes: Int, to file: Int32, _ path: String) throws(FileError) {
        let lost = FileError(operation: "read", path: reader.path, number: EIO)
        guard case .success = try reader.header(),
            let header = try reader.bytes(at: 0, JournalFormat.segmentHeaderBytes)
        else { throw lost }
        try files.write(header, to: file, at: 0, path: path)
        var offset = JournalFormat.segmentHeaderBytes
        while offset < bytes {
            guard case .good(let frame, _) = try reader.frame(at: offset, limit: bytes),
                let whole = try reader.bytes(at: offset, frame.frameBytes)
            else { throw lost }
            try files.write(whole, to: file, at: offset, path: path)
            offset += frame.frameBytes
        }
    }

    /// Called with `lock` held.
    private func replace(_ segment: JournalSegment, by copy: JournalSegment, _ bytes: Int) {
        copy.byteCount = bytes
        copy.lastSequence = segment.lastSequence
        copy.hasFrames = segment.hasFrames
        copy.syncedBytes = bytes
        // Keep the failure until the name of the copy is synced in the directory.
        copy.syncFailure = segment.syncFailure
        for index in segments.indices where segments[index] === segment { segments[index] = copy }
    }
}
