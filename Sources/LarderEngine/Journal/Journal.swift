import Platform

/// The journal of a larder: what was committed, in order, in files that are only ever appended to.
///
/// It knows files, and nothing of databases. A *segment* is a file; a *frame* in it is one commit group. A group counts
/// as a whole or not at all, and what counts is always a beginning of what was appended. docs/StorageFormat.md shows
/// the bytes.
///
/// - A process never appends to a segment of an earlier one: it begins a new segment, whose header says how much of the
///   former counts. So a bad tail need not be cut off on the disk, and reading changes nothing.
/// - A failed write is rolled back (ftruncate). If that fails as well, the frame's header is overwritten, or else the next
///   segment is begun, whose header says that the frame does not count.
/// - After a failed fsync nobody knows what is on the disk. The segment is given up, and ``sync()`` fails until it is
///   removed, which the caller does when what stands in it is durable elsewhere.
///
/// Threads: ``append(_:)``, ``rotate()``, ``replay(_:)``, ``setAside(_:to:)`` and ``close()`` belong to one thread at a
/// time (whoever leads the commits). ``sync()``, ``removeSegments(upTo:)`` and the counters may be called from any
/// thread beside them. The proof for `@unchecked Sendable`: what changes is guarded by `lock`.
final class Journal: @unchecked Sendable {
    let directory: String
    let segmentBytes: Int
    let files: JournalFiles
    /// How much of a segment is read at once.
    let readAheadBytes: Int

    // Lock order: `removing` or `syncing`, then `lock`.
    /// Held while segments are removed, which takes some fsyncs, or read, so that none vanishes under a reader.
    let removing = Lock()
    /// Held while files are synced. The system tells of a lost page once: two syncs of one file at the same time could
    /// hear of it both or only one.
    private let syncing = Lock()
    let lock = Lock()

    // Guarded by `lock`:
    /// Those that count, the oldest first. The last one may be active.
    var segments: [JournalSegment]
    /// Where the next frame goes, if it fits.
    var active: JournalSegment?
    var lastSequence: UInt64 = 0
    /// ``lastSequence`` before the last group was appended.
    var sequenceBefore: UInt64 = 0
    /// Everything up to it is on the disk.
    var syncedSequence: UInt64 = 0
    var nextNumber: UInt64 = 1
    /// By which files that are staged get different names.
    var stagedCount = 0
    /// Whether the segments that were found have been read.
    var isRead: Bool
    var damage: JournalDamage?
    private var isClosed = false
    /// Whether a file was removed and the directory could not be synced after it.
    private var isRemovalUnsynced = false

    /// Opens the journal in `directory`, which is made if it is missing; nothing else is written.
    /// - Parameter segmentBytes: a segment is ended when the next frame would make it longer. One frame may be longer.
    /// - Parameter faults: for tests.
    init(
        directory: String, segmentBytes: Int, faults: JournalFaults? = nil, readAheadBytes: Int = 1 << 20
    ) throws(FileError) {
        self.directory = directory
        self.segmentBytes = segmentBytes
        self.readAheadBytes = readAheadBytes
        files = JournalFiles(faults: faults)
        try FileSystem.makeDirectory(directory)
        segments = []
        for name in try FileSystem.list(directory) {
            // Other names are not ours; a segment that was not finished is written over.
            guard let number = JournalFormat.number(ofFile: name) else {
                // Written ahead of a commit that did not come. If it stays, the next start removes it.
                if StagedFrame.isName(name) { try? files.unlink(directory + "/" + name) }
                continue
            }
            let path = directory + "/" + name
            segments.append(JournalSegment(number: number, path: path, foundBytes: FileSystem.size(path)))
        }
        // The names have equal lengths, and were sorted.
        isRead = segments.isEmpty
        if let last = segments.last { nextNumber = last.number + 1 }
    }

    // MARK: Counters

    /// The last commit unit that the journal got, or that was elsewhere before its first segment.
    var lastAppended: UInt64 { lock.withLock { lastSequence } }

    /// What a segment of one long frame counts at most in ``byteCounts``: what a group of ordinary writes takes, or more.
    private var countedBytesMax: Int { max(segmentBytes, 8 << 20) }

    /// Bytes of all segments, and those of them that are not the rest of a long frame.
    var byteCounts: (live: Int, counted: Int) {
        lock.withLock {
            segments.reduce(into: (0, 0)) { counts, segment in
                counts.0 += segment.liveBytes
                counts.1 += min(segment.liveBytes, countedBytesMax)
            }
        }
    }

    /// The number of the segment that is being written.
    var activeNumber: UInt64? { lock.withLock { active?.number } }

    /// Says that commit units up to `sequence` were elsewhere before the first segment that is made, if there is none.
    func begin(behind sequence: UInt64) {
        lock.withLock { if segments.isEmpty { lastSequence = max(lastSequence, sequence) } }
    }

    // MARK: Appending

    /// Writes a commit group, with one write(2). An empty batch is nothing.
    ///
    /// What throws has left nothing that counts. Refused with EBADMSG after damage was found and not set aside, with
    /// EINVAL when the sequences do not rise above those before.
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
            // Of a frame that is not complete nothing counts, wherever it ends.
            _ = cutOff(segment, at: offset)
            throw error
        }
        lock.withLock { note(batch, in: segment, end: offset + frame.count) }
    }

    /// Notes that a group was written. Called with `lock` held.
    func note(_ batch: JournalBatch, in segment: JournalSegment, end: Int) {
        segment.byteCount = end
        segment.lastSequence = batch.lastSequence
        segment.hasFrames = true
        sequenceBefore = lastSequence
        lastSequence = batch.lastSequence
    }

    /// Reads what was found, if nobody has.
    private func prepareToAppend() throws(FileError) {
        let (hasEnded, hasRead) = lock.withLock { (isClosed, isRead) }
        if hasEnded { throw FileError(operation: "append to", path: directory, number: EBADF) }
        if !hasRead { try readAgain() }
        if lock.withLock({ damage != nil }) {
            throw FileError(operation: "append to", path: directory, number: EBADMSG)
        }
    }

    /// Reads what is there without a visitor.
    func readAgain() throws(FileError) {
        do throws(LarderError) {
            _ = try replay { _, _ in }
        } catch {
            if let failure = error.underlying as? FileError { throw failure }
            throw FileError(operation: "read", path: directory, number: ENOTSUP)
        }
    }

    /// Has the disk know the name of the oldest segment, which nothing else vouches for: each of the others is missed by the one
    /// behind it, but one that is gone from the beginning looks as if it had been removed, and what stands behind it would count
    /// without it. Before another segment gets a name, and before the one ahead of it loses its own, for a failure of the machine
    /// may leave any of the names that were not synced. Does nothing where the name is known, as after every removal.
    /// - Parameter number: of the segments above it.
    func nameOldest(above number: UInt64 = 0) throws(FileError) {
        let unnamed = lock.withLock {
            segments.first { $0.number > number }.flatMap { $0.isNameSynced ? nil : segments }
        }
        guard let present = unnamed else { return }
        try files.syncDirectory(directory)
        lock.withLock { for segment in present { segment.isNameSynced = true } }
    }

    /// Begins a segment. Its file gets its name with a full header in it, so that the end of the process leaves nothing
    /// or a good header. The directory is synced by ``sync()``.
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
            // Written over by the next attempt if it stays.
            try? files.unlink(temporary)
            throw error
        }
        lock.withLock { add(segment) }
        return segment
    }

    /// The header of the segment that comes next.
    var nextHeader: JournalSegmentHeader {
        lock.withLock {
            JournalSegmentHeader(
                number: nextNumber, formerNumber: segments.last?.number ?? 0,
                formerBytes: UInt64(segments.last?.liveBytes ?? 0), formerSequence: lastSequence)
        }
    }

    /// Takes a segment that was made as the one that is being written. Called with `lock` held.
    func add(_ segment: JournalSegment) {
        segments.append(segment)
        active = segment
        nextNumber = segment.number + 1
    }

    /// Ends the segment that is being written; syncs nothing. The next append begins a new one.
    /// - Returns: the highest segment that is complete: everything appended before this call stands in it or in lower
    ///   ones. nil when there is none. Not nil without an append since the last call, while segments were not removed.
    func rotate() -> UInt64? {
        lock.withLock {
            if let active, active.hasFrames { self.active = nil }
            return segments.last { $0 !== active }?.number
        }
    }

    // MARK: Syncing

    /// Returns when everything that was appended before the call is on the disk, in segments of earlier processes too.
    ///
    /// After a failure it goes on failing until the segments concerned are removed: nothing later may count on them.
    /// - Parameter number: segments up to this one are left out, because what stands in them is to be durable elsewhere.
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
                    lastSequence
                )
            }
            for (segment, bytes, _) in unsynced where segment.syncedBytes < bytes {
                try giveUpOnFailure([segment]) { () throws(FileError) in try sync(segment) }
            }
            let unnamed = unsynced.filter { !$0.2 }.map(\.0)
            if !unnamed.isEmpty {
                try giveUpOnFailure(unnamed) { () throws(FileError) in try files.syncDirectory(directory) }
            }
            lock.withLock {
                for (segment, bytes, _) in unsynced {
                    segment.syncedBytes = max(segment.syncedBytes, bytes)
                    segment.isNameSynced = true
                }
                if isRead, segments.allSatisfy({ $0.number > number || $0.isSynced }) {
                    syncedSequence = max(syncedSequence, sequence)
                }
            }
        }
    }

    private func sync(_ segment: JournalSegment) throws(FileError) {
        if segment.file >= 0 { return try files.sync(segment.file, path: segment.path) }
        let wasThere = try files.sync(fileAt: segment.path)
        // Removed meanwhile: then what stood in it is elsewhere.
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

    /// Runs `body` while segments are neither removed nor read by others.
    func withoutRemovals<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        try removing.withLock(body)
    }

    /// Removes complete segments up to `number`: what stands in them is durable elsewhere.
    ///
    /// The oldest first, and the directory synced after each: a failure of the machine never brings an older one back
    /// beside a missing newer one. Stops at the first failure; what is left is removed by a later call.
    /// - Parameter condition: asked once nobody reads segments, and none is begun to be read while they are removed.
    /// - Returns: false where the condition does not hold: then nothing was removed.
    @discardableResult
    func removeSegments(upTo number: UInt64, if condition: () -> Bool = { true }) throws(FileError) -> Bool {
        try withoutRemovals { () throws(FileError) in
            guard condition() else { return false }
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

    /// Closes the files; syncs nothing. Everything fails with EBADF afterwards. Idempotent.
    func close() {
        lock.withLock {
            isClosed = true
            active = nil
            segments = []
        }
    }
}
