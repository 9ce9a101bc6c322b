import LarderPlatform

/// The journal of a larder: all commits in order, in append-only files.
///
/// The class knows only files, not databases. A *segment* is a file; a *frame* in it is one commit group. A group is
/// valid as a whole or not at all, and the valid groups are always the first ones appended. docs/StorageFormat.md shows
/// the bytes.
///
/// - A process never appends to an earlier process's segment. It begins a new one, whose header has the valid length of
///   the previous one. So an invalid end of a segment need not be cut off on the disk, and reading changes nothing.
/// - A failed write is rolled back (ftruncate). If that fails, the frame's header is overwritten; if that fails too,
///   the next segment begins, and its header excludes the frame.
/// - After a failed fsync the content of the disk is unknown. The segment is abandoned, and ``sync(above:)`` fails
///   until the caller removes it, after its entries are durable elsewhere.
///
/// Threads: ``append(_:)``, ``rotate()``, ``replay(known:_:)``, ``setAside(_:to:)`` and ``close()`` are called by one
/// thread at a time, the leader of the commits. ``sync(above:)``, ``removeSegments(upTo:if:)`` and the counters may be
/// called concurrently from any thread. `@unchecked Sendable`: mutable state is guarded by `lock`.
final class Journal: @unchecked Sendable {
    let directory: String
    /// The identity of the directory when it was opened.
    private let identity: FileSystem.FileIdentity?
    let segmentBytes: Int
    let files: JournalFiles
    /// The bytes of a segment that are read at once.
    let readAheadBytes: Int
    /// Records what was synced and removed; nil if that is not needed.
    let marks: JournalMarkFile?

    // Lock order: `removing` or `syncing`, then `lock`.
    /// Held while segments are read or removed (which takes some fsyncs), so that none vanishes under a reader.
    let removing = Lock()
    /// Held while files are synced. The system may report a lost page only once, so of two simultaneous syncs of a
    /// file, perhaps only one would get the error.
    private let syncing = Lock()
    let lock = Lock()

    // Guarded by `lock`:
    /// The valid segments, the oldest first. The last one may be active.
    var segments: [JournalSegment]
    /// The segment for the next frame, if it fits.
    var active: JournalSegment?
    var lastSequence: UInt64 = 0
    /// ``lastSequence`` before the last group was appended.
    var sequenceBefore: UInt64 = 0
    /// Everything up to this sequence is on the disk.
    var syncedSequence: UInt64 = 0
    var nextNumber: UInt64 = 1
    /// Makes the names of staged files distinct.
    var stagedCount = 0
    /// Whether the segments that were found at the start have been read.
    var isRead: Bool
    var damage: JournalDamage?
    private var isClosed = false
    /// Whether a file was removed and its directory is not synced yet.
    private var isRemovalUnsynced = false

    /// Opens the journal in `directory`. Creates the directory if it is missing; writes nothing else.
    /// - Parameter segmentBytes: a segment ends when the next frame would exceed this. A single frame may be longer.
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
            // Ignore other names, which are not Larder's. The next segment overwrites an unfinished one.
            guard let number = JournalFormat.number(ofFile: name) else {
                // Remove files staged for commits that did not happen. If that fails, the next start tries again.
                if StagedFrame.isName(name) { try? files.unlink(directory + "/" + name) }
                continue
            }
            let path = directory + "/" + name
            segments.append(JournalSegment(number: number, path: path, foundBytes: FileSystem.size(path)))
        }
        // Sorting by name sorted the numbers too: all names have the same length.
        isRead = segments.isEmpty
        if let last = segments.last { nextNumber = last.number + 1 }
    }

    /// Whether the directory, or the file of the next frames, was removed, moved or replaced by another program. No
    /// error reports that, and appended frames are lost. Costs a stat(2) and an fstat(2).
    var isGone: Bool {
        if FileSystem.isReplaced(directory, since: identity) { return true }
        return lock.withLock { active.map { FileSystem.isNameless(descriptor: $0.file) } ?? false }
    }

    // MARK: Counters

    /// The last commit unit of the journal, or the last one before its first segment.
    var lastAppended: UInt64 { lock.withLock { lastSequence } }

    /// The most bytes for which a segment counts in ``byteCounts``, so that one long frame counts only in part. At
    /// least the size of a group of ordinary writes.
    private var countedBytesMax: Int { max(segmentBytes, 8 << 20) }

    /// The size of all segments, and the size without the tails of long frames.
    var byteCounts: (live: Int, counted: Int) {
        lock.withLock {
            segments.reduce(into: (0, 0)) { counts, segment in
                counts.0 += segment.liveBytes
                counts.1 += min(segment.liveBytes, countedBytesMax)
            }
        }
    }

    /// The number of the active segment.
    var activeNumber: UInt64? { lock.withLock { active?.number } }

    /// Sets the last commit unit before the first segment. Does nothing if there is a segment.
    func begin(behind sequence: UInt64) {
        lock.withLock { if segments.isEmpty { lastSequence = max(lastSequence, sequence) } }
    }

    // MARK: Appending

    /// Writes a commit group, with one write(2). Does nothing for an empty batch.
    ///
    /// After an error nothing of the group is valid. Throws EBADMSG after damage that was not set aside, and EINVAL if
    /// the sequences do not increase.
    func append(_ batch: JournalBatch) throws(FileError) {
        if batch.isEmpty { return }
        if batch.defect != 0 { throw FileError(operation: "append to", path: directory, number: batch.defect) }
        try prepareToAppend()
        let (last, synced, current) = lock.withLock { (lastSequence, syncedSequence, active) }
        guard batch.firstSequence > last else {
            throw FileError(operation: "append to", path: directory, number: EINVAL)
        }
        if let staged = batch.staged {
            try nameOldest()
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
            // An incomplete frame is invalid even if it cannot be cut off.
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

    /// Reads the segments that were found at the start, unless that was done.
    private func prepareToAppend() throws(FileError) {
        let (hasEnded, hasRead) = lock.withLock { (isClosed, isRead) }
        if hasEnded { throw FileError(operation: "append to", path: directory, number: EBADF) }
        if !hasRead { try readAgain() }
        if lock.withLock({ damage != nil }) {
            throw FileError(operation: "append to", path: directory, number: EBADMSG)
        }
    }

    /// Reads the segments without a visitor.
    func readAgain() throws(FileError) {
        do throws(LarderError) {
            _ = try replay { _, _ in }
        } catch {
            if let failure = error.underlying as? FileError { throw failure }
            throw FileError(operation: "read", path: directory, number: ENOTSUP)
        }
    }

    /// Syncs the name of the oldest segment in the directory. If any other segment was missing, the header of its
    /// successor would reveal that. But if the oldest segment lost its name, it would seem to have been removed, and
    /// its successors would be valid without it. Called before another segment gets a name, and before an older segment
    /// is removed, because a machine failure may lose any unsynced names. Does nothing if the name is synced, as after
    /// every removal.
    /// - Parameter number: segments up to this one are ignored.
    func nameOldest(above number: UInt64 = 0) throws(FileError) {
        let unnamed = lock.withLock {
            segments.first { $0.number > number }.flatMap { $0.isNameSynced ? nil : segments }
        }
        guard let present = unnamed else { return }
        try files.syncDirectory(directory)
        lock.withLock { for segment in present { segment.isNameSynced = true } }
    }

    /// Begins a segment. Its file gets its name after its full header is written, so a terminated process leaves no
    /// file or a valid header. ``sync(above:)`` syncs the directory.
    func makeSegment() throws(FileError) -> JournalSegment {
        try nameOldest()
        let header = nextHeader
        let path = directory + "/" + JournalFormat.fileName(header.number)
        let temporary = path + ".new"
        let segment = JournalSegment(number: header.number, path: path, file: try files.create(temporary))
        do throws(FileError) {
            try files.write(header.bytes, to: segment.file, path: temporary)
            try files.rename(temporary, to: path)
        } catch {
            // If it stays, the next attempt overwrites it.
            try? files.unlink(temporary)
            throw error
        }
        lock.withLock { add(segment) }
        return segment
    }

    /// The header of the next segment.
    var nextHeader: JournalSegmentHeader {
        lock.withLock {
            JournalSegmentHeader(
                number: nextNumber, previousNumber: segments.last?.number ?? 0,
                previousBytes: UInt64(segments.last?.liveBytes ?? 0), previousSequence: lastSequence)
        }
    }

    /// Makes a segment the active one. Called with `lock` held.
    func add(_ segment: JournalSegment) {
        // Valid until the segment has frames.
        segment.lastSequence = lastSequence
        segments.append(segment)
        active = segment
        nextNumber = segment.number + 1
    }

    /// Ends the active segment; syncs nothing. The next append begins a new one.
    /// - Returns: the highest complete segment: every earlier append is in it or in lower ones. nil if there is none.
    ///   If nothing was appended since the last call, it is the same segment as then, unless that was removed.
    func rotate() -> UInt64? {
        lock.withLock {
            if let active, active.hasFrames { self.active = nil }
            return segments.last { $0 !== active }?.number
        }
    }

    // MARK: Syncing

    /// Returns when every earlier append is on the disk, also in segments of earlier processes.
    ///
    /// After a failure, every call fails until the segments concerned are removed, because no later commit may rely on
    /// them.
    /// - Parameter number: skips segments up to this one, because their entries will be durable elsewhere.
    func sync(above number: UInt64 = 0) throws(FileError) {
        try syncing.withLock { () throws(FileError) in
            try lock.withLock { () throws(FileError) in
                if isClosed { throw FileError(operation: "fsync", path: directory, number: EBADF) }
                for segment in segments where segment.number > number {
                    if let failure = segment.syncFailure { throw failure }
                }
            }
            let (unsynced, sequence, frame) = lock.withLock {
                (
                    segments.filter { $0.number > number && !$0.isSynced }.map { ($0, $0.liveBytes, $0.isNameSynced) },
                    lastSequence,
                    // The last sequence that a frame has. `lastSequence` may be the number after which this process
                    // began, which no frame has.
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
                return syncedSequence >= frame ? frame : 0
            }
            marks?.noteSynced(synced)
        }
    }

    private func sync(_ segment: JournalSegment) throws(FileError) {
        if segment.file >= 0 { return try files.sync(segment.file, path: segment.path) }
        let wasThere = try files.sync(fileAt: segment.path)
        // If it was removed in the meantime, its entries are durable elsewhere.
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

    /// Runs `body` while segments are neither removed nor read by other threads.
    func withoutRemovals<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        try removing.withLock(body)
    }

    /// Removes complete segments up to `number`, whose entries are durable elsewhere.
    ///
    /// It removes the oldest first and syncs the directory after each, so a machine failure never restores an older one
    /// without a newer one. It stops at the first failure; a later call removes the rest.
    /// - Parameter condition: called while no thread reads segments. No thread can begin to read them before they are
    ///   removed.
    /// - Returns: false, without removing any, if the condition does not hold.
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
                try nameOldest(above: oldest.number)
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
