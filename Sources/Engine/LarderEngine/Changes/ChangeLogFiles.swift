import LarderPlatform

/// The files of a ``ChangeLog``, in the larder's directory `CHANGES`, from which the next process restores the log.
///
/// Each change is written to these files first, and then to the journal, so the files contain every change that the
/// journal has. The files are synced only when the larder is closed; if the machine fails before that, they are
/// ignored. If a write fails, all files are removed, because followers would not notice a gap in the log. Without the
/// files, followers read all entries again.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
final class ChangeLogFiles: @unchecked Sendable {
    private struct Segment {
        let number: UInt64
        var bytes: Int
    }

    private let directory: String
    /// Returns the limit of the files' total size, in bytes. When it is exceeded, the oldest segments are removed.
    private let bytesMax: @Sendable () -> Int
    private let files: JournalFiles
    private let lock = Lock()
    // Guarded by `lock`:
    private var segments: [Segment] = []
    private var file: Int32 = -1
    /// The highest segment number so far, including removed segments.
    private var lastNumber: UInt64 = 0
    private var isClosed = false

    init(directory: String, bytesMax: @escaping @Sendable () -> Int, faults: JournalFaults?) {
        self.directory = directory + "/" + ChangeSegment.directoryName
        self.bytesMax = bytesMax
        files = JournalFiles(faults: faults)
    }

    deinit { if file >= 0 { systemClose(file) } }

    private func path(_ number: UInt64) -> String { directory + "/" + ChangeSegment.fileName(number) }

    /// The bytes of all segments.
    var byteCount: Int { lock.withLock { segments.reduce(0) { $0 + $1.bytes } } }

    /// Whether records can be appended.
    var isOpen: Bool { lock.withLock { file >= 0 } }

    /// Whether a new segment must be started before records are appended.
    var needsSegment: Bool {
        lock.withLock {
            guard !isClosed else { return false }
            guard file >= 0, let last = segments.last else { return true }
            return last.bytes >= max(4096, bytesMax() / 8)
        }
    }

    // MARK: Writing

    /// Starts a new segment with `records`. Then removes the oldest segments if the total size exceeds its limit.
    /// - Throws: if the segment cannot be written; all files are then removed, and no records can be appended.
    func begin(_ records: [UInt8]) throws(FileError) {
        try lock.withLock { () throws(FileError) in
            guard !isClosed else { return }
            closeFile()
            do throws(FileError) {
                try FileSystem.makeDirectory(directory)
                try makeSegment(records)
            } catch {
                discardHeld()
                throw error
            }
            let most = max(4096, bytesMax())
            while segments.count > 1, segments.reduce(0, { $0 + $1.bytes }) > most * 7 / 8 || segments.count > 256 {
                try? files.unlink(path(segments[0].number))
                segments.removeFirst()
            }
        }
    }

    private func makeSegment(_ records: [UInt8]) throws(FileError) {
        let number = lastNumber + 1
        let temporary = path(number) + ".new"
        let new = try files.create(temporary)
        let bytes =
            ChangeSegment.header(number: number, previousBytes: segments.last?.bytes ?? 0)
            + ChangeSegment.frame(records, number: number, offset: ChangeSegment.headerBytes)
        do throws(FileError) {
            try files.write(bytes, to: new, path: temporary)
            try files.rename(temporary, to: path(number))
        } catch {
            systemClose(new)
            try? files.unlink(temporary)
            throw error
        }
        file = new
        lastNumber = number
        segments.append(Segment(number: number, bytes: bytes.count))
    }

    /// Appends records with one write(2). Does nothing if no segment is open.
    /// - Throws: if the write fails; all files are then removed.
    func append(_ records: [UInt8]) throws(FileError) {
        try lock.withLock { () throws(FileError) in try appendHeld(records) }
    }

    private func appendHeld(_ records: [UInt8]) throws(FileError) {
        guard file >= 0, let last = segments.last, !records.isEmpty else { return }
        let frame = ChangeSegment.frame(records, number: last.number, offset: last.bytes)
        do throws(FileError) {
            guard records.count <= ChangeSegment.frameBytesMax else {
                throw FileError(operation: "append to", path: directory, number: EMSGSIZE)
            }
            try files.write(frame, to: file, at: last.bytes, path: path(last.number))
        } catch {
            discardHeld()
            throw error
        }
        segments[segments.count - 1].bytes += frame.count
    }

    /// Appends the last records, syncs everything and closes the files.
    func close(_ records: [UInt8]) {
        lock.withLock {
            defer {
                closeFile()
                isClosed = true
            }
            do throws(FileError) {
                for segment in segments.dropLast() { _ = try files.sync(fileAt: path(segment.number)) }
                try appendHeld(records)
                guard file >= 0, let last = segments.last else { return }
                try files.sync(file, path: path(last.number))
                try files.syncDirectory(directory)
            } catch {
                discardHeld()
            }
        }
    }

    /// Removes all files, because they are invalid or outdated.
    func discard() { lock.withLock { discardHeld() } }

    private func discardHeld() {
        closeFile()
        segments = []
        for name in (try? FileSystem.list(directory)) ?? [] {
            let path = directory + "/" + name
            // If the file cannot be removed, truncate it, so that it is not read as a log.
            if (try? files.unlink(path)) == nil { try? files.truncate(fileAt: path, to: 0) }
            lastNumber = max(lastNumber, ChangeSegment.number(ofFile: name) ?? 0)
        }
    }

    private func closeFile() {
        if file >= 0 { systemClose(file) }
        file = -1
    }

    // MARK: Reading

    /// Returns the segments of an earlier process, the oldest first. The next new segment gets the number after theirs.
    func read() throws(FileError) -> [(number: UInt64, bytes: [UInt8])] {
        guard FileSystem.isDirectory(directory) else { return [] }
        let numbers = try FileSystem.list(directory).compactMap { ChangeSegment.number(ofFile: $0) }.sorted()
        lock.withLock { lastNumber = numbers.last ?? 0 }
        var found: [(number: UInt64, bytes: [UInt8])] = []
        for number in numbers {
            let bytes = try FileSystem.read(path(number), bytesMax: ChangeSegment.frameBytesMax) ?? []
            // A segment is missing, so the segments before the gap are useless.
            if let last = found.last, last.number + 1 != number { found = [] }
            found.append((number, bytes))
        }
        return found
    }

    /// Continues with the segments that the loader found valid.
    func adopt(_ found: [(number: UInt64, bytes: Int)]) {
        lock.withLock { segments = found.map { Segment(number: $0.number, bytes: $0.bytes) } }
    }
}
