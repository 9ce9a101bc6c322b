import LarderPlatform

/// The journal of a larder: all commits in order, in append-only files.
///
/// The class handles only files, not databases. A *segment* is a file. A *frame* in it contains one commit group: the
/// commit units that were written together. The *sequence* is the number of a commit unit. A group is valid as a whole
/// or not at all, and all valid groups precede the first invalid one. docs/StorageFormat.md describes the bytes.
///
/// - A process never appends to a segment of an earlier process. It begins a new segment. The new header contains the
///   valid length of the previous segment. So reading changes nothing: an invalid end need not be cut off.
/// - A failed write is rolled back by ftruncate. If that fails, the frame's header is overwritten. If that fails too,
///   the next segment begins, and its header excludes the frame.
/// - After a failed fsync, the content of the disk is unknown. Nothing more is appended to the segment.
///   ``sync(above:)`` fails until the caller has saved the segment's entries in LevelDB and removed the segment, or has
///   called ``copyUnsynced()``.
///
/// Threads: ``append(_:)``, ``rotate()``, ``replay(known:onOpened:_:)`` until it has opened the segments,
/// ``setAside(_:to:)`` and ``close()`` are called by one thread at a time: the one that currently writes commits.
/// ``sync(above:)``, ``removeSegments(upTo:if:)`` and the counters may be called concurrently from any thread.
/// `@unchecked Sendable`: `lock` guards the mutable state.
final class Journal: @unchecked Sendable {
    let directory: String
    /// The identity of the directory when the journal was opened. Used to detect that another program has replaced it.
    private let identity: FileSystem.FileIdentity?
    let segmentBytes: Int
    let files: JournalFiles
    /// The number of bytes that one read of a segment requests.
    let readAheadBytes: Int
    /// The file that records what was synced and removed; nil if it is not needed.
    let marks: JournalMarkFile?

    // Lock order: `removing` or `syncing`, then `lock`.
    /// Held while segments are read or removed, so that no segment is removed while it is read. A removal takes some
    /// fsyncs.
    let removing = Lock()
    /// Held while files are synced. The system may report a lost page only once. If two threads synced the same file at
    /// the same time, perhaps only one of them would get the error.
    private let syncing = Lock()
    let lock = Lock()

    // Guarded by `lock`:
    /// The segments, the oldest first. The last one may be active.
    var segments: [JournalSegment]
    /// The segment to which the next frame is appended if it fits; nil if the next frame begins a new segment.
    var active: JournalSegment?
    var lastSequence: UInt64 = 0
    /// ``lastSequence`` before the last group was appended.
    var sequenceBefore: UInt64 = 0
    /// The last sequence in a frame up to which everything is on the disk.
    var syncedSequence: UInt64 = 0
    var nextNumber: UInt64 = 1
    /// A counter for distinct names of staged files (``StagedFrame``).
    var stagedCount = 0
    /// Whether the segments that were found at the start have been read.
    var isRead: Bool
    var damage: JournalDamage?
    private var isClosed = false
    /// Whether a file was removed and the directory has not been synced since.
    private var isRemovalUnsynced = false

    /// Opens the journal in `directory`. Creates the directory if it is missing; writes nothing else.
    /// - Parameter segmentBytes: the size that a segment may have; a frame that does not fit begins the next segment. A
    ///   single frame may be longer.
    /// - Parameter faults: for tests.
    init(
        directory: String, segmentBytes: Int, marks: JournalMarkFile? = nil, faults: JournalFaults? = nil,
        readAheadBytes: Int = 1 << 20
    ) throws(FileError) {
        self.directory = directory
        self.marks = marks
        self.segmentBytes = segmentBytes
        self.readAheadBytes = readAheadBytes
        files = JournalFiles(faults: faults)
        try FileSystem.makeDirectory(directory)
        identity = FileSystem.identity(directory)
        segments = []
        for name in try FileSystem.list(directory) {
            // Ignore other files, which are not Larder's, and unfinished segments, which the next segment overwrites.
            guard let number = JournalFormat.number(ofFile: name) else {
                // Remove files that were staged for commits that did not happen. If that fails, the next start tries
                // again.
                if StagedFrame.isName(name) { try? files.unlink(directory + "/" + name) }
                continue
            }
            let path = directory + "/" + name
            segments.append(JournalSegment(number: number, path: path, foundBytes: FileSystem.size(path)))
        }
        // The list is sorted by name, and so by number, because all names have the same length.
        isRead = segments.isEmpty
        if let last = segments.last { nextNumber = last.number + 1 }
    }

    /// Whether another program has removed, moved or replaced the directory or the active segment's file. Writes to
    /// such a file succeed, but appended frames are lost. Costs a stat(2) and an fstat(2).
    var isGone: Bool {
        if FileSystem.isReplaced(directory, since: identity) { return true }
        return lock.withLock { active.map { FileSystem.isNameless(descriptor: $0.file) } ?? false }
    }

    // MARK: Counters

    /// The last sequence in the journal; in an empty journal, the last sequence before its first segment.
    var lastAppended: UInt64 { lock.withLock { lastSequence } }

    /// The maximum number of bytes that a segment adds to the counted size in ``byteCounts``. So one long frame counts
    /// only in part, and a group of ordinary writes counts in full.
    private var countedBytesMax: Int { max(segmentBytes, 8 << 20) }

    /// The size of all segments in bytes. `live` counts all bytes, `counted` at most ``countedBytesMax`` per segment.
    var byteCounts: (live: Int, counted: Int) {
        lock.withLock {
            segments.reduce(into: (0, 0)) { counts, segment in
                counts.0 += segment.liveBytes
                counts.1 += min(segment.liveBytes, countedBytesMax)
            }
        }
    }

    /// The number of the active segment; nil if there is none.
    var activeNumber: UInt64? { lock.withLock { active?.number } }

    /// Sets the sequence of the last commit unit before the first segment. Does nothing if there is a segment.
    func begin(behind sequence: UInt64) {
        lock.withLock { if segments.isEmpty { lastSequence = max(lastSequence, sequence) } }
    }

    // MARK: Appending

    /// Writes a commit group with one write(2). Does nothing for an empty batch.
    ///
    /// After an error, no part of the group is valid. Throws EBADMSG while the journal has damage that was not set
    /// aside, and EINVAL if the sequences do not increase.
    func append(_ batch: JournalBatch) throws(FileError) {
        if batch.isEmpty { return }
        if batch.defect != 0 { throw FileError(operation: "append to", path: directory, number: batch.defect) }
        try prepareToAppend()
        let (last, synced, current) = lock.withLock { (lastSequence, syncedSequence, active) }
        guard batch.firstSequence > last else {
            throw FileError(operation: "append to", path: directory, number: EINVAL)
        }
        if let staged = batch.staged {
            try syncNameOfOldest()
            return try append(batch, staged, syncedSequence: synced)
        }
        let segment: JournalSegment
        if let current, !current.hasFrames || current.liveBytes + batch.byteCount <= segmentBytes {
            segment = current
        } else {
            segment = try makeSegment()
        }
        let offset = segment.liveBytes
        guard let frame = batch.seal(segment: segment.number, offset: offset, syncedSequence: synced) else { return }
        do throws(FileError) {
            try files.write(frame, to: segment.file, at: offset, path: segment.path)
        } catch {
            // Ignore an error: an incomplete frame is invalid even if it cannot be cut off.
            _ = cutOff(segment, at: offset)
            throw error
        }
        lock.withLock { note(batch, in: segment, end: offset + frame.count) }
    }

    /// Records that a group was written. Called with `lock` held.
    func note(_ batch: JournalBatch, in segment: JournalSegment, end: Int) {
        segment.byteCount = end
        segment.lastSequence = batch.lastSequence
        segment.hasFrames = true
        sequenceBefore = lastSequence
        lastSequence = batch.lastSequence
    }

    /// Checks that groups can be appended. Reads the segments that were found at the start if that was not done yet.
    private func prepareToAppend() throws(FileError) {
        let (hasEnded, hasRead) = lock.withLock { (isClosed, isRead) }
        if hasEnded { throw FileError(operation: "append to", path: directory, number: EBADF) }
        if !hasRead { try readAgain() }
        if lock.withLock({ damage != nil }) {
            throw FileError(operation: "append to", path: directory, number: EBADMSG)
        }
    }

    /// Replays the journal to find the end of its valid part. Applies nothing.
    func readAgain() throws(FileError) {
        do throws(LarderError) {
            _ = try replay { _, _ in }
        } catch {
            if let failure = error.underlying as? FileError { throw failure }
            throw FileError(operation: "read", path: directory, number: ENOTSUP)
        }
    }

    /// Syncs the directory if the name of the oldest segment is not synced yet. Called before another segment gets a
    /// name, and before an older segment is removed. A machine failure may lose unsynced names. The header of the next
    /// segment reveals a missing segment. But the loss of the oldest segment would not be detected, because the loss
    /// looks like a removal.
    /// - Parameter number: segments up to this number are ignored.
    func syncNameOfOldest(above number: UInt64 = 0) throws(FileError) {
        let unnamed = lock.withLock {
            segments.first { $0.number > number }.flatMap { $0.isNameSynced ? nil : segments }
        }
        guard let present = unnamed else { return }
        try files.syncDirectory(directory)
        lock.withLock { for segment in present { segment.isNameSynced = true } }
    }

    /// Begins a segment. Its file gets its final name after the header is written. So if the process is terminated,
    /// there is either no such file, or one with a valid header. Does not sync the directory; ``sync(above:)`` does.
    func makeSegment() throws(FileError) -> JournalSegment {
        try syncNameOfOldest()
        let header = nextHeader
        let path = directory + "/" + JournalFormat.fileName(header.number)
        let temporary = path + ".new"
        let segment = JournalSegment(number: header.number, path: path, file: try files.create(temporary))
        do throws(FileError) {
            try files.write(header.bytes, to: segment.file, path: temporary)
            try files.rename(temporary, to: path)
        } catch {
            // If the temporary file cannot be removed, the next attempt overwrites it.
            try? files.unlink(temporary)
            throw error
        }
        lock.withLock { add(segment) }
        return segment
    }

    var nextHeader: JournalSegmentHeader {
        lock.withLock {
            JournalSegmentHeader(
                number: nextNumber, previousNumber: segments.last?.number ?? 0,
                previousBytes: UInt64(segments.last?.liveBytes ?? 0), previousSequence: lastSequence)
        }
    }

    /// Makes a segment the active one. Called with `lock` held.
    func add(_ segment: JournalSegment) {
        // The segment has no frames yet, so its last sequence is that of the previous segment.
        segment.lastSequence = lastSequence
        segments.append(segment)
        active = segment
        nextNumber = segment.number + 1
    }

    /// Ends the active segment if it has frames, so that the next append begins a new one. Syncs nothing.
    /// - Returns: the number of the last complete segment; nil if there is none. All earlier appends are in this
    ///   segment or in earlier ones. If nothing was appended since the last call, and the segment still exists, the
    ///   result is the same.
    func rotate() -> UInt64? {
        lock.withLock {
            if let active, active.hasFrames { self.active = nil }
            return segments.last { $0 !== active }?.number
        }
    }

    /// Returns the last of the oldest segments that together have at least `bytes` bytes, and their size. Nil if that is
    /// the newest segment, or if a segment is damaged or could not be synced.
    func oldest(bytes: Int) -> (number: UInt64, sequence: UInt64, byteCount: Int)? {
        lock.withLock {
            guard isRead, damage == nil, segments.allSatisfy({ $0.syncFailure == nil }) else { return nil }
            var count = 0
            for segment in segments.dropLast() {
                count += segment.liveBytes
                if count >= bytes { return (segment.number, segment.lastSequence, count) }
            }
            return nil
        }
    }

    // MARK: Syncing

    /// Whether the journal has groups, and no mark that reveals their loss, because nothing was synced since the last
    /// removal. False after a failed fsync.
    var isUnmarked: Bool {
        guard let mark = marks?.known, mark.synced <= mark.removed else { return false }
        return lock.withLock {
            segments.contains { $0.hasFrames && $0.lastSequence > mark.removed }
                && segments.allSatisfy { $0.syncFailure == nil }
        }
    }

    /// Lets the next start report the loss of all appended groups, unless the journal is back by then. Called when its
    /// files were found missing.
    func noteGone() {
        let last = lock.withLock { segments.lazy.filter(\.hasFrames).map(\.lastSequence).max() }
        if let last { marks?.noteSynced(last) }
    }

    /// Syncs all segments, including those of earlier processes. Returns when every earlier append is on the disk.
    ///
    /// After a failure, every call fails until the unsynced segments are removed or copied, because later commits rely
    /// on these segments.
    /// - Parameter number: segments up to this number are not synced, because the caller will save their entries in
    ///   LevelDB.
    func sync(above number: UInt64 = 0) throws(FileError) {
        try syncing.withLock { () throws(FileError) in
            try lock.withLock { () throws(FileError) in
                if isClosed { throw FileError(operation: "fsync", path: directory, number: EBADF) }
                for segment in segments where segment.number > number {
                    if let failure = segment.syncFailure { throw failure }
                }
            }
            let (unsynced, sequence) = lock.withLock {
                (
                    segments.filter { $0.number > number && !$0.isSynced }.map { ($0, $0.liveBytes, $0.isNameSynced) },
                    // The last sequence in a frame. `lastSequence` is higher if this process has numbered its commits
                    // from a higher sequence, and has not appended any yet. To a replay, the units between would seem
                    // lost.
                    segments.last(where: \.hasFrames)?.lastSequence ?? 0
                )
            }
            for (segment, bytes, _) in unsynced where segment.syncedBytes < bytes {
                try giveUpOnFailure([segment]) { () throws(FileError) in try sync(segment) }
            }
            let unnamed = unsynced.filter { !$0.2 }.map(\.0)
            if !unnamed.isEmpty {
                try giveUpOnFailure(unnamed) { () throws(FileError) in try files.syncDirectory(directory) }
            }
            let synced = lock.withLock {
                for (segment, bytes, _) in unsynced {
                    segment.syncedBytes = max(segment.syncedBytes, bytes)
                    segment.isNameSynced = true
                }
                if isRead, segments.allSatisfy({ $0.number > number || $0.isSynced }) {
                    syncedSequence = max(syncedSequence, sequence)
                }
                return syncedSequence >= sequence ? sequence : 0
            }
            marks?.noteSynced(synced)
        }
    }

    private func sync(_ segment: JournalSegment) throws(FileError) {
        if segment.file >= 0 { return try files.sync(segment.file, path: segment.path) }
        let wasThere = try files.sync(fileAt: segment.path)
        // If the segment was removed in the meantime, its entries are in LevelDB.
        if wasThere || lock.withLock({ !segments.contains { $0 === segment } }) { return }
        throw FileError(operation: "fsync", path: segment.path, number: ENOENT)
    }

    private func giveUpOnFailure(
        _ concerned: [JournalSegment], _ body: () throws(FileError) -> Void
    ) throws(FileError) {
        do throws(FileError) {
            try body()
        } catch {
            lock.withLock {
                for segment in concerned {
                    segment.syncFailure = error
                    if active === segment { active = nil }
                }
            }
            throw error
        }
    }

    // MARK: Removing

    /// Runs `body` while no other thread reads or removes segments.
    func withoutRemovals<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        try removing.withLock(body)
    }

    /// Removes the complete segments up to `number`. Their entries must be in LevelDB.
    ///
    /// Removes the oldest segment first and syncs the directory after each removal. So a machine failure never restores
    /// a segment without all later segments. Stops at the first error; a later call removes the rest.
    /// - Parameter condition: called while no other thread reads segments. No thread can begin to read segments until
    ///   the removal ends.
    /// - Returns: false, without removing any segment, if the condition returns false.
    @discardableResult
    func removeSegments(upTo number: UInt64, if condition: () -> Bool = { true }) throws(FileError) -> Bool {
        try withoutRemovals { () throws(FileError) in
            guard condition() else { return false }
            let last = lock.withLock {
                segments.lazy.filter { [active] in $0.number <= number && $0 !== active }.map(\.lastSequence).max()
            }
            if let last { try marks?.noteRemoved(last) }
            try syncRemoval()
            while true {
                let oldest = lock.withLock { segments.first.flatMap { $0 === active ? nil : $0 } }
                guard let oldest, oldest.number <= number else { return true }
                try syncNameOfOldest(above: oldest.number)
                try files.unlink(oldest.path)
                lock.withLock {
                    segments.removeAll { $0 === oldest }
                    isRemovalUnsynced = true
                }
                try syncRemoval()
            }
        }
    }

    private func syncRemoval() throws(FileError) {
        guard lock.withLock({ isRemovalUnsynced }) else { return }
        let present = lock.withLock { segments }
        try files.syncDirectory(directory)
        lock.withLock {
            isRemovalUnsynced = false
            for segment in present { segment.isNameSynced = true }
        }
    }

    /// Closes the files; syncs nothing. Every later call fails with EBADF. Idempotent.
    func close() {
        lock.withLock {
            isClosed = true
            active = nil
            segments = []
        }
    }
}
