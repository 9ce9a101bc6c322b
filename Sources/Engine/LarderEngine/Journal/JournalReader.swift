import LarderPlatform

/// Reads one segment's file, and verifies checksums before any content is used.
///
/// Reads with pread into a buffer, not through a memory mapping: if a mapped file is truncated, access to it terminates
/// the process. The buffer holds the bytes read ahead. It grows for a longer frame, but not beyond the file's length.
final class JournalReader {
    let number: UInt64
    let path: String
    /// The length of the file when it was opened.
    let fileBytes: Int
    private let file: Int32
    private let readAheadBytes: Int
    // Invariant: `buffer` holds the file's bytes from `start` to `start + count`; `count <= capacity`.
    private var buffer: UnsafeMutableRawPointer?
    private var capacity = 0
    private var start = 0
    private var count = 0

    /// - Returns: nil if there is no such file, or it cannot be a segment (a directory, a link).
    init?(number: UInt64, path: String, readAheadBytes: Int) throws(FileError) {
        self.number = number
        self.path = path
        self.readAheadBytes = readAheadBytes
        var file = FileSystem.openFile(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        var status = stat()
        var failure: FileError?
        if file < 0 {
            let isNoSegment = [ENOENT, ELOOP, ENXIO].contains(errno)
            failure = isNoSegment ? nil : FileError(operation: "open", path: path, number: errno)
        } else if fstat(file, &status) != 0 {
            failure = FileError(operation: "stat", path: path, number: errno)
        }
        let isSegment = file >= 0 && failure == nil && status.st_mode & S_IFMT == S_IFREG
        if !isSegment, file >= 0 {
            close(file)
            file = -1
        }
        self.file = file
        fileBytes = isSegment ? Int(status.st_size) : 0
        if let failure { throw failure }
        if !isSegment { return nil }
    }

    deinit {
        if file >= 0 { close(file) }
        free(buffer)
    }

    /// Returns the bytes from `offset` to `offset + length`, valid until the next call.
    /// - Returns: nil if the file is shorter.
    func bytes(at offset: Int, _ length: Int) throws(FileError) -> UnsafeRawBufferPointer? {
        guard offset >= 0, length >= 0, length <= fileBytes, offset <= fileBytes - length else { return nil }
        if offset < start || offset + length > start + count { try load(offset, length) }
        // If the file was shortened in the meantime, there are fewer bytes.
        guard let buffer, offset + length <= start + count else { return nil }
        return UnsafeRawBufferPointer(start: buffer + (offset - start), count: length)
    }

    /// Fills the buffer with at least `length` bytes from `offset` on, if the file has them.
    private func load(_ offset: Int, _ length: Int) throws(FileError) {
        let wanted = max(length, min(readAheadBytes, fileBytes - offset), 1)
        if wanted > capacity {
            // Discard the buffer's bytes and read them again: moving them would cost as much.
            free(buffer)
            count = 0
            capacity = 0
            buffer = malloc(wanted)
            if buffer == nil { throw FileError(operation: "read", path: path, number: ENOMEM) }
            capacity = wanted
        }
        start = offset
        count = 0
        guard let buffer else { return }
        while count < wanted {
            let got = pread(file, buffer + count, wanted - count, off_t(offset + count))
            if got == 0 { return }
            if got < 0 {
                if errno == EINTR { continue }
                throw FileError(operation: "read", path: path, number: errno)
            }
            count += got
        }
    }

    /// Frees the buffer.
    func release() {
        free(buffer)
        buffer = nil
        capacity = 0
        count = 0
    }

    // MARK: Segments and frames

    func header() throws(FileError) -> Result<JournalSegmentHeader, JournalSegmentHeader.Defect> {
        let length = min(fileBytes, JournalFormat.segmentHeaderBytes)
        let bytes = try bytes(at: 0, length) ?? UnsafeRawBufferPointer(start: nil, count: 0)
        return Result { () throws(JournalSegmentHeader.Defect) in
            try JournalSegmentHeader(parsing: bytes, number: number)
        }
    }

    enum Frame {
        /// A complete frame with a correct checksum. The payload is valid until the next call of the reader.
        case good(JournalFrameHeader, payload: UnsafeRawBufferPointer)
        case bad(String)
    }

    /// Reads the frame at `offset`, which must end at or before `limit`.
    func frame(at offset: Int, limit: Int) throws(FileError) -> Frame {
        guard limit <= fileBytes else { return .bad("the file is shorter than its recorded length") }
        guard limit - offset >= JournalFormat.frameHeaderBytes,
            let head = try bytes(at: offset, JournalFormat.frameHeaderBytes)
        else { return .bad("the file ends within a group's header") }
        let room = limit - offset - JournalFormat.frameHeaderBytes
        guard BigEndian.read(head, at: 0, count: 4) == UInt64(JournalFormat.frameMagic) else {
            return .bad("no group begins here")
        }
        guard let header = JournalFrameHeader(parsing: head, room: room) else {
            return .bad("the group is longer than the rest of the file")
        }
        guard let frame = try bytes(at: offset, header.frameBytes) else { return .bad("the file has become shorter") }
        let sum = JournalFormat.frameChecksum(
            segment: number, offset: offset, UnsafeRawBufferPointer(rebasing: frame[8...]))
        guard BigEndian.read(frame, at: 4, count: 4) == UInt64(sum) else { return .bad("the checksum does not match") }
        return .good(header, payload: UnsafeRawBufferPointer(rebasing: frame[JournalFormat.frameHeaderBytes...]))
    }

    /// The result of a search for valid frames after a bad one.
    struct Later {
        var frames = 0
        /// The highest sequence that one of the frames records as synced.
        var syncedSequence: UInt64 = 0
        /// Whether one of the frames has operations of the ledger (an internal database). These may have been synced
        /// even if no later frame records that.
        var hasFacts = false
        /// The number of bytes, 256 MiB at first, that the search may still read for frames with wrong checksums. A
        /// damaged or malicious file can contain many headers of long frames.
        var budget = 256 << 20
        /// Whether the budget was exhausted. Then the replay assumes that there are more valid frames, and that they
        /// were synced.
        var isIncomplete = false
    }

    /// Searches for valid frames with sequences above `sequence`, from `offset` to the end of the file.
    func search(from offset: Int, above sequence: UInt64, _ later: inout Later) throws(FileError) {
        var position = max(0, offset)
        while let candidate = try nextMagic(from: position) {
            position = candidate + 1
            guard let head = try bytes(at: candidate, JournalFormat.frameHeaderBytes),
                let header = JournalFrameHeader(
                    parsing: head, room: fileBytes - candidate - JournalFormat.frameHeaderBytes),
                header.firstSequence > sequence, header.firstSequence <= header.lastSequence
            else { continue }
            if case .good(let header, let payload) = try frame(at: candidate, limit: fileBytes) {
                later.frames += 1
                later.hasFacts = later.hasFacts || JournalPayload.concerns(DatabaseName.ledger, payload)
                later.syncedSequence = max(later.syncedSequence, header.syncedSequence)
                position = candidate + header.frameBytes
            } else {
                later.budget -= header.frameBytes
                if later.budget < 0 {
                    later.isIncomplete = true
                    return
                }
            }
        }
    }

    /// Returns the offset of the next ``JournalFormat/frameMagic``; nil if there is none.
    private func nextMagic(from offset: Int) throws(FileError) -> Int? {
        let first = Int32(JournalFormat.frameMagic >> 24)
        var position = offset
        while fileBytes - position >= JournalFormat.frameHeaderBytes {
            let window = min(max(readAheadBytes, 64), fileBytes - position)
            guard let bytes = try bytes(at: position, window), let base = bytes.baseAddress else { return nil }
            // The last three bytes may be the beginning of a magic. Search them again, together with the next bytes.
            guard let hit = memchr(base, first, window - 3) else {
                position += window - 3
                continue
            }
            let found = UnsafeRawPointer(hit) - base
            if BigEndian.read(bytes, at: found, count: 4) == UInt64(JournalFormat.frameMagic) {
                return position + found
            }
            position += found + 1
        }
        return nil
    }
}
