import LarderPlatform

/// Keeps the engine's time monotonic across restarts: marks in the file `TIME` record the highest time that was used.
///
/// Marks are written alternately to two offsets, so that a torn write leaves the other mark intact. While the time is
/// in use, a mark is written a few times a second, and synced about once a second. While the time is unused, no marks
/// are written; the next use writes a mark before the time is returned. So a killed process loses at most
/// ``EngineTime/unmarkedMilliseconds``.
///
/// Thread-safe.
final class TimeKeeper: Sendable {
    static let fileName = "TIME"
    /// The offset of the second mark: in another block of the disk.
    static let secondOffset = 4096
    /// The longest downtime that is added to the time, in milliseconds: 7 days. A longer downtime is implausible: the
    /// clock may have shown 1970 at first, and was then corrected.
    static let restMilliseconds: Int64 = 7 * 86_400_000
    /// The smallest change of the clock that is reported as a warning, in milliseconds.
    static let reportedStepMilliseconds: Int64 = 1000

    private let path: String
    private let time: EngineTime
    private let report: @Sendable (CacheEvent.Level, String) -> Void
    private let state = Locked(State())

    fileprivate struct State {
        var file: Int32 = -1
        var number: UInt64 = 0
        /// Whether an earlier process has left a mark.
        var hadMark = false
        /// The highest time that had been returned when the last mark was written.
        var marked: Int64 = -1
        /// How far the time was ahead of the wall clock when the last mark was written, in milliseconds.
        var markedOffset: Int64 = 0
        var isUnsynced = false
        var hasFailed = false
        /// From the last reading of the clocks: how far the time was ahead of the wall clock (`offset`), and the
        /// highest difference between wall clock and monotonic clock so far (`lead`). If either changes, the wall clock
        /// was set.
        var seen: (offset: Int64, lead: Int64)?
        /// Whether no marks are written: before ``begin()``, so that the previous process's marks are kept, and after
        /// ``end()``.
        var isClosed = true
    }

    init(directory: String, time: EngineTime, report: @escaping @Sendable (CacheEvent.Level, String) -> Void) {
        path = directory + "/" + Self.fileName
        self.time = time
        self.report = report
    }

    deinit { state.withLock { if $0.file >= 0 { close($0.file) } } }

    // MARK: The start

    /// Continues from the last process's time, and writes a first mark.
    /// - Throws: `newerFormat`; `io` if the file exists and cannot be read: without its time, expired entries could
    ///   reappear. A later attempt may succeed. A damaged file is only reported; the larder then follows the clock.
    func begin() throws(LarderError) {
        if let mark = try load() { resume(from: mark) }
        state.withLock { $0.isClosed = false }
        note()
        time.onUnmarked { [weak self] in self?.note() }
    }

    /// Returns the newer of the two marks in the file; nil if there is none.
    private func load() throws(LarderError) -> TimeMark? {
        let found: [UInt8]?
        do throws(FileError) {
            found = try FileSystem.read(path)
        } catch {
            throw LarderError(
                .io,
                "\(error): without the larder's time in this file, expired entries could come back. "
                    + "Nothing was changed; try again, or remove the file if the clock has not been set back",
                operation: "open larder", underlying: error)
        }
        guard let bytes = found else { return nil }
        let newest: TimeMark?
        do throws(SealedBlock.Defect) {
            newest = try TimeMark.newest(in: bytes, secondOffset: Self.secondOffset)
        } catch {
            guard case .newerVersion(let version) = error else { return nil }
            throw LarderError(
                .newerFormat,
                "\(Self.fileName) was written by a newer version of Larder (version \(version), this one reads "
                    + "\(TimeMark.version))", operation: "open larder")
        }
        if newest == nil { report(.warning, "\(path) is damaged: the larder's time now follows the clock") }
        return newest
    }

    private func resume(from mark: TimeMark) {
        state.withLock { ($0.number, $0.hadMark) = (mark.number, true) }
        let wall = time.sample().wall
        // The clock shows the mark's time or a later one, so follow the clock. The downtime is not added, because the
        // difference may come from a correction of the clock.
        if wall >= mark.time { return }
        let rest = wall.subtractingReportingOverflow(mark.wall)
        let counted = !rest.overflow && (0...Self.restMilliseconds).contains(rest.partialValue) ? rest.partialValue : 0
        time.resume(from: min(max(mark.time, 0), EngineTime.endMilliseconds) + counted)
        let offset = time.offsetMilliseconds
        guard offset > 0 else { return }
        report(
            offset >= Self.reportedStepMilliseconds ? .warning : .info,
            "the clock shows \(wall), but the larder's time was already \(mark.time) when the clock showed "
                + "\(mark.wall) (milliseconds since 1970): the larder's time continues \(offset) ms ahead of the "
                + "clock, so that expired entries stay expired")
    }

    /// Advances the engine's time to `storedAt`, the time when an entry was stored, if `storedAt` is later. If no
    /// earlier process left a mark, does nothing: an older version of Larder may have stored the entry while the clock
    /// was ahead.
    func resume(fromStoredAt storedAt: Int64) {
        if state.withLock({ $0.hadMark }), storedAt > time.reached { time.resume(from: storedAt) }
    }

    // MARK: Marks

    /// Reads the clocks, and writes a mark if the time was used since the last mark. One write(2), no sync.
    func note() {
        // Report without the lock, because the receiver of the report may read the time.
        for (level, text) in state.withLock({ note(&$0) }) { report(level, text) }
    }

    private func note(_ state: inout State) -> [(CacheEvent.Level, String)] {
        if state.isClosed { return [] }
        let (now, wall, lead) = time.sample()
        let news = state.step(offset: now - wall, lead: lead).map { [$0] } ?? []
        let reached = time.reached
        // Write a mark also after the clock was set: a mark has both times, and the next process uses their difference.
        guard reached > state.marked || abs(now - wall - state.markedOffset) > 1 else { return news }
        // Record the mark even after a failed write: otherwise every later use of the time would retry immediately,
        // instead of after `EngineTime.unmarkedMilliseconds`.
        defer { time.noteMark(reached) }
        do throws(FileError) {
            try write(TimeMark(number: state.number + 1, time: now, wall: now - wall > 1 ? wall : now), &state)
            state.number += 1
            (state.marked, state.markedOffset) = (reached, now - wall)
            (state.isUnsynced, state.hasFailed) = (true, false)
            return news
        } catch {
            defer { state.hasFailed = true }
            return news + [
                (
                    state.hasFailed ? .debug : .error,
                    "\(error): if the clock is set back, the next process may continue from an earlier time"
                )
            ]
        }
    }

    /// Syncs the last mark. Does an fsync only if the mark is new.
    func sync() {
        // Sync without holding the lock, because an fsync takes long.
        let descriptor = state.withLock { state -> Int32 in
            guard state.isUnsynced, state.file >= 0 else { return -1 }
            state.isUnsynced = false
            return dup(state.file)
        }
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        guard fsync(descriptor) != 0 else { return }
        let failure = FileError(operation: "fsync", path: path, number: errno)
        report(.debug, "\(failure): a machine failure may lose the last seconds of the larder's time")
    }

    /// Writes and syncs a last mark.
    func end() {
        note()
        sync()
        state.withLock { $0.isClosed = true }
    }

    private func write(_ mark: TimeMark, _ state: inout State) throws(FileError) {
        if state.file < 0 {
            state.file = FileSystem.openFile(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
            guard state.file >= 0 else { throw FileError(operation: "create", path: path, number: errno) }
        }
        guard lseek(state.file, off_t(mark.number % 2 == 0 ? 0 : Self.secondOffset), SEEK_SET) >= 0 else {
            throw FileError(operation: "lseek", path: path, number: errno)
        }
        try FileSystem.writeAll(mark.bytes, descriptor: state.file, path: path)
    }
}

extension TimeKeeper.State {
    /// Returns a message if the clock was set since the last call; otherwise nil.
    fileprivate mutating func step(offset: Int64, lead: Int64) -> (CacheEvent.Level, String)? {
        defer { seen = (offset, lead) }
        guard let seen else { return nil }
        if offset - seen.offset >= TimeKeeper.reportedStepMilliseconds {
            return (
                .warning,
                "the clock was set back by \(offset - seen.offset) ms: the larder's time continues, \(offset) ms ahead"
            )
        }
        if lead - seen.lead >= TimeKeeper.reportedStepMilliseconds {
            return (
                .warning,
                "the clock was set forward by \(lead - seen.lead) ms beyond the larder's time: entries expire earlier by that"
            )
        }
        if seen.offset - offset >= TimeKeeper.reportedStepMilliseconds {
            return (.info, "the clock was set forward: the larder's time is \(max(0, offset)) ms ahead of it")
        }
        return nil
    }
}

/// A mark in the file `TIME`: the engine's time together with the wall clock's.
///
/// ```
/// offset  bytes  field (integers big-endian)
///      0      8  "LARDERTM"
///      8      4  version of the layout: 1
///     12      4  CRC-32C of the bytes 0 to 11; every version begins with these 16 bytes
///     16      8  number of the mark; the higher one of two is valid
///     24      8  the engine's time, milliseconds since 1970
///     32      8  the wall clock then, milliseconds since 1970
///     40      4  CRC-32C of the bytes 0 to 39
/// ```
package struct TimeMark: AlternatingMark, Hashable, Sendable {
    package static let version: UInt32 = 1
    package static let byteCount = 44
    static let magic: UInt64 = 0x4C41_5244_4552_544D

    package var number: UInt64
    package var time: Int64
    package var wall: Int64

    package init(number: UInt64, time: Int64, wall: Int64) {
        (self.number, self.time, self.wall) = (number, time, wall)
    }

    package var bytes: [UInt8] {
        SealedBlock.bytes(
            Self.magic, version: Self.version, [number, UInt64(bitPattern: time), UInt64(bitPattern: wall)])
    }

    init(parsing bytes: UnsafeRawBufferPointer) throws(SealedBlock.Defect) {
        let numbers = try SealedBlock.numbers(3, in: bytes, Self.magic, version: Self.version)
        guard let time = Int64(exactly: numbers[1]), let wall = Int64(exactly: numbers[2]) else { throw .malformed }
        self.init(number: numbers[0], time: time, wall: wall)
    }
}
