import LarderPlatform

/// The files of a ``ChangeLog``, in the larder's directory `CHANGES`, from which the next process restores the log.
///
/// Each change is written to these files first, and then to the journal, so the files contain every change that the
/// journal has. The files are synced only when the larder is closed; if the machine fails before that, they are
/// ignored. If a write fails, all files are removed, because followers would not notice a gap in the log. Without the
/// files, followers read all entries again.
///
/// Thread-safe.
final class ChangeLogFiles: Sendable {
    private struct State {
        /// The number and the length of each segment.
        var segments: [(number: UInt64, bytes: Int)] = []
        var file: Int32 = -1
        /// The highest segment number so far, including removed segments.
        var lastNumber: UInt64 = 0
        var isClosed = false

        var byteCount: Int { segments.reduce(0) { $0 + $1.bytes } }

        mutating func closeFile() {
            if file >= 0 { systemClose(file) }
            file = -1
        }
    }

    private let directory: String
    /// Returns the limit of the files' total size, in bytes. When it is exceeded, the oldest segments are removed.
    private let bytesMax: @Sendable () -> Int
    private let files: JournalFiles
    private let state = Locked(State())

    init(directory: String, bytesMax: @escaping @Sendable () -> Int, faults: JournalFaults?) {
        self.directory = directory + "/" + ChangeSegment.directoryName
        self.bytesMax = bytesMax
        files = JournalFiles(faults: faults)
    }

    deinit { state.withLock { $0.closeFile() } }

    private func path(_ number: UInt64) -> String { directory + "/" + ChangeSegment.fileName(number) }

    /// The bytes of all segments.
    var byteCount: Int { state.withLock { $0.byteCount } }

    /// Whether a new segment must be started before records are appended.
    var needsSegment: Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            guard state.file >= 0, let last = state.segments.last else { return true }
            return last.bytes >= max(4096, bytesMax() / 8)
        }
    }

    // MARK: Writing

    /// Starts a new segment with `records`. Then removes the oldest segments if the total size exceeds its limit.
    /// - Throws: if the segment cannot be written; all files are then removed, and no records can be appended.
    func begin(_ records: [UInt8]) throws(FileError) {
        try state.withLock { (state) throws(FileError) in
            guard !state.isClosed else { return }
            state.closeFile()
            do throws(FileError) {
                try FileSystem.makeDirectory(directory)
                try makeSegment(records, &state)
            } catch {
                discard(&state)
                throw error
            }
            let most = max(4096, bytesMax())
            while state.segments.count > 1, state.byteCount > most * 7 / 8 || state.segments.count > 256 {
                try? files.unlink(path(state.segments.removeFirst().number))
            }
        }
    }

    private func makeSegment(_ records: [UInt8], _ state: inout State) throws(FileError) {
        let number = state.lastNumber + 1
        let temporary = path(number) + ".new"
        let new = try files.create(temporary)
        let bytes =
            ChangeSegment.header(number: number, previousBytes: state.segments.last?.bytes ?? 0)
            + ChangeSegment.frame(records, number: number, offset: ChangeSegment.headerBytes)
        do throws(FileError) {
            try files.write(bytes, to: new, path: temporary)
            try files.rename(temporary, to: path(number))
        } catch {
            systemClose(new)
            try? files.unlink(temporary)
            throw error
        }
        (state.file, state.lastNumber) = (new, number)
        state.segments.append((number, bytes.count))
    }

    /// Appends records with one write(2). Does nothing if no segment is open.
    /// - Throws: if the write fails; all files are then removed.
    func append(_ records: [UInt8]) throws(FileError) {
        try state.withLock { (state) throws(FileError) in try append(records, &state) }
    }

    private func append(_ records: [UInt8], _ state: inout State) throws(FileError) {
        guard state.file >= 0, let last = state.segments.last, !records.isEmpty else { return }
        let frame = ChangeSegment.frame(records, number: last.number, offset: last.bytes)
        do throws(FileError) {
            guard records.count <= ChangeSegment.frameBytesMax else {
                throw FileError(operation: "append to", path: directory, number: EMSGSIZE)
            }
            try files.write(frame, to: state.file, at: last.bytes, path: path(last.number))
        } catch {
            discard(&state)
            throw error
        }
        state.segments[state.segments.count - 1].bytes += frame.count
    }

    /// Appends the last records, syncs everything and closes the files.
    func close(_ records: [UInt8]) {
        state.withLock { state in
            defer {
                state.closeFile()
                state.isClosed = true
            }
            do throws(FileError) {
                for segment in state.segments.dropLast() { _ = try files.sync(fileAt: path(segment.number)) }
                try append(records, &state)
                guard state.file >= 0, let last = state.segments.last else { return }
                try files.sync(state.file, path: path(last.number))
                try files.syncDirectory(directory)
            } catch {
                discard(&state)
            }
        }
    }

    /// Removes all files, because they are invalid or outdated.
    func discard() { state.withLock { discard(&$0) } }

    private func discard(_ state: inout State) {
        state.closeFile()
        state.segments = []
        for name in (try? FileSystem.list(directory)) ?? [] {
            let path = directory + "/" + name
            // If the file cannot be removed, truncate it, so that it is not read as a log.
            if (try? files.unlink(path)) == nil { try? files.truncate(fileAt: path, to: 0) }
            state.lastNumber = max(state.lastNumber, ChangeSegment.number(ofFile: name) ?? 0)
        }
    }

    // MARK: Reading

    /// Returns the segments of an earlier process, the oldest first. The next new segment gets the number after theirs.
    func read() throws(FileError) -> [(number: UInt64, bytes: [UInt8])] {
        guard FileSystem.isDirectory(directory) else { return [] }
        let numbers = try FileSystem.list(directory).compactMap { ChangeSegment.number(ofFile: $0) }.sorted()
        state.withLock { $0.lastNumber = numbers.last ?? 0 }
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
        state.withLock { $0.segments = found }
    }
}
