import LarderClient
import LarderPlatform

/// The file of an export while it is written: `FILE.part`, which becomes `FILE` when it is complete. So `FILE` is never half
/// an export, and an interrupted one goes on behind its last whole line.
///
/// Single owner. A second export to the same file gets an error: the file is locked (flock(2)), as long as this lives.
final class ExportFile {
    /// What a former call has written.
    struct Former {
        var header: ExportHeader
        /// The database and the key of the last entry; nil where a database has only begun, or none has.
        var lastKey: [UInt8]?
        var database: String?
        var entries = 0
        var isComplete = false
        /// Where the last whole line ends.
        var byteCount = 0
    }

    let path: String
    let partPath: String
    private let descriptor: Int32

    init(_ path: String) throws(InputOutputError) {
        self.path = path
        partPath = path + ".part"
        descriptor = FileSystem.openFile(partPath, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw InputOutputError(message: "\(partPath) could not be opened: \(SystemErrorText.of(errno))")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            close(descriptor)
            throw InputOutputError(message: "\(partPath) is being written by another export")
        }
    }

    deinit { close(descriptor) }

    /// Reads what a former call has written, every line of it, and cuts off what is behind the last whole one.
    /// - Returns: nil if there is nothing to go on with.
    func resume() throws -> Former? {
        let reader = LineReader(descriptor, name: partPath)
        func parse(_ line: UnsafeRawBufferPointer) throws -> ExportLine {
            do throws(LineDefect) {
                return try ExportLine.parse(line)
            } catch {
                throw InputOutputError(
                    message: "\(partPath), line \(reader.number), is not what an export writes: \(error.message); "
                        + "remove the file to begin anew")
            }
        }
        var former: Former?
        while let line = try reader.next(parse) {
            switch line {
            case .header(let header) where former == nil: former = Former(header: header)
            case .database(let line):
                former?.database = line.database
                former?.lastKey = nil
            case .entry(let entry):
                former?.database = entry.database
                former?.lastKey = entry.key
                former?.entries += 1
            case .end: former?.isComplete = true
            case .header: break
            }
            guard former != nil else {
                throw InputOutputError(
                    message: "\(partPath) is not an unfinished export: its first line is another one; move it away")
            }
            former?.byteCount = reader.offset
        }
        let kept = former?.byteCount ?? 0
        guard ftruncate(descriptor, off_t(kept)) == 0, lseek(descriptor, off_t(kept), SEEK_SET) == off_t(kept) else {
            throw InputOutputError(message: "\(partPath) could not be cut: \(SystemErrorText.of(errno))")
        }
        return former
    }

    func write(_ bytes: [UInt8]) throws(InputOutputError) {
        do throws(FileError) {
            try FileSystem.writeAll(bytes, descriptor: descriptor, path: partPath)
        } catch {
            throw unwritten(error)
        }
    }

    /// Makes all of it durable, and gives it its name.
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
        InputOutputError(
            message:
                "\(path) is not complete: \(error). The same call continues after the last complete line of \(partPath)"
        )
    }
}
