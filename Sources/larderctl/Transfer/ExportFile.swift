import LarderClient
import LarderPlatform

/// The file of an export. It is written as `FILE.part`, and renamed to `FILE` when it is complete, so `FILE` is never
/// incomplete. An interrupted export can continue after the last complete line of `FILE.part`.
///
/// While this object exists, flock(2) locks the file: a second export to the same file fails. For one thread at a time.
final class ExportFile {
    /// What an interrupted export has written.
    struct Previous {
        var header: ExportHeader
        /// The key of the last entry, and the last database. The key is nil if no entry of that database was written;
        /// both are nil if no database was written.
        var lastKey: [UInt8]?
        var database: String?
        var entries = 0
        var isComplete = false
        /// The offset of the end of the last complete line.
        var byteCount = 0
    }

    let path: String
    let partPath: String
    private let descriptor: Int32

    init(_ path: String) throws(InputOutputError) {
        self.path = path
        partPath = path + ".part"
        descriptor = try Descriptor.open(partPath, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            close(descriptor)
            throw InputOutputError(message: "\(partPath) is being written by another export")
        }
    }

    deinit { close(descriptor) }

    /// Reads all lines of an interrupted export, and truncates the file after the last complete line.
    /// - Returns: nil if the file is new or has no complete line.
    func resume() throws -> Previous? {
        let reader = LineReader(descriptor, name: partPath)
        var previous: Previous?
        while let line = try reader.next(ExportLine.parsed) {
            switch line {
            case .success(.header(let header)): previous = previous ?? Previous(header: header)
            case .success(.database(let line)):
                previous?.database = line.database
                previous?.lastKey = nil
            case .success(.entry(let entry, let database)):
                previous?.database = database
                previous?.lastKey = entry.key
                previous?.entries += 1
            case .success(.end): previous?.isComplete = true
            case .failure(let defect):
                throw InputOutputError(
                    message: "\(partPath), line \(reader.number), is not a line of an export: \(defect.message); "
                        + "remove the file to start again")
            }
            guard previous != nil else {
                throw InputOutputError(
                    message: "\(partPath) is not an unfinished export: its first line differs; move it away")
            }
            previous?.byteCount = reader.offset
        }
        let kept = previous?.byteCount ?? 0
        guard ftruncate(descriptor, off_t(kept)) == 0, lseek(descriptor, off_t(kept), SEEK_SET) == off_t(kept) else {
            throw InputOutputError("\(partPath) could not be truncated")
        }
        return previous
    }

    func write(_ bytes: [UInt8]) throws(InputOutputError) {
        do throws(FileError) {
            try FileSystem.writeAll(bytes, descriptor: descriptor, path: partPath)
        } catch {
            throw unwritten(error)
        }
    }

    /// Syncs the file and renames it to its final name.
    func finish() throws(InputOutputError) {
        guard fsync(descriptor) == 0 else {
            throw unwritten(FileError(operation: "fsync", path: partPath, number: errno))
        }
        do throws(FileError) {
            try FileSystem.rename(partPath, to: path)
            try FileSystem.syncDirectory(FileSystem.parent(path))
        } catch {
            throw unwritten(error)
        }
    }

    private func unwritten(_ error: FileError) -> InputOutputError {
        let advice = "The same call continues after the last complete line of \(partPath)"
        return InputOutputError(message: "\(path) is not complete: \(error). \(advice)")
    }
}
