import LarderPlatform

extension Journal {
    /// The maximum number of bytes written between two syncs. With more dirty pages, the system would block all
    /// writers.
    private static let aheadSyncBytes = 32 << 20
    /// The maximum number of bytes of one write.
    private static let aheadWriteBytes = 4 << 20

    /// Writes the payload of a long record to a file that will become a segment. May take long. May run concurrently
    /// with all other calls.
    /// - Parameters:
    ///   - bytesBefore: the number of bytes in the frame's payload before the payload of the record.
    ///   - isSynced: whether the whole payload must be on the disk when the call returns.
    func stage(_ payload: UnsafeRawBufferPointer, bytesBefore: Int, isSynced: Bool) throws(FileError)
        -> StagedFrame
    {
        let number = lock.withLock {
            stagedCount += 1
            return stagedCount
        }
        let path = directory + "/" + StagedFrame.name(number)
        let file = try files.create(path)
        do throws(FileError) {
            let start = JournalFormat.segmentHeaderBytes + JournalFormat.frameHeaderBytes + bytesBefore
            var checksum: UInt32 = 0
            var done = 0
            var synced = 0
            while done < payload.count {
                let part = payload[done..<min(done + Self.aheadWriteBytes, payload.count)]
                try files.write(UnsafeRawBufferPointer(rebasing: part), to: file, at: start + done, path: path)
                checksum = CRC32C.extend(checksum, UnsafeRawBufferPointer(rebasing: part))
                done = part.endIndex
                if done - synced >= Self.aheadSyncBytes || isSynced && done == payload.count {
                    try files.sync(file, path: path)
                    synced = done
                }
            }
            // Sync the name of the oldest segment now: during the commit, all writers would wait for this sync.
            try syncNameOfOldest()
            return StagedFrame(
                path: path, file: file, byteCount: payload.count, checksum: checksum, bytesBefore: bytesBefore)
        } catch {
            systemClose(file)
            try? files.unlink(path)
            throw error
        }
    }

    /// Commits a group that ends with a staged payload, by making the staged file the next segment. Called by
    /// ``append(_:)``.
    func append(_ batch: JournalBatch, _ staged: StagedFrame, syncedSequence: UInt64) throws(FileError) {
        let header = nextHeader
        let offset = JournalFormat.segmentHeaderBytes
        guard let front = batch.seal(segment: header.number, offset: offset, syncedSequence: syncedSequence),
            front.count == JournalFormat.frameHeaderBytes + staged.bytesBefore, staged.descriptor >= 0
        else { throw FileError(operation: "append to", path: directory, number: EINVAL) }
        let path = directory + "/" + JournalFormat.fileName(header.number)
        try files.write(header.bytes, to: staged.descriptor, path: staged.path)
        try files.write(front, to: staged.descriptor, at: offset, path: staged.path)
        try files.rename(staged.path, to: path)
        let segment = JournalSegment(number: header.number, path: path, file: staged.takeFile())
        lock.withLock {
            add(segment)
            note(batch, in: segment, end: offset + batch.byteCount)
        }
    }
}
