import LarderLevelDBFormat
import LarderPlatform

// This code must never open the file LOCK. LevelDB's lock is an fcntl lock, so closing any descriptor of LOCK would
// release the lock of a database that this process has open.

/// Whether a directory contains a database, according to its file names and `CURRENT`.
package enum FileState: Hashable, Sendable {
    /// The directory does not exist, or it has no LevelDB files with data: a database may be created here. Files of
    /// other programs, `LOCK`, `LOG`, and the remains of an interrupted creation may exist.
    case absentOrEmpty
    /// `CURRENT` names a manifest that exists.
    case database
    /// There are files with data, but `CURRENT` is missing, empty or truncated, or names a manifest that does not
    /// exist.
    case damaged

    /// Determines the state from the file names in the directory and the content of `CURRENT`. Throws `.ioError` if the
    /// directory or `CURRENT` exists but cannot be read.
    init(inspecting path: String, operation: String) throws(LevelDBError) {
        guard let names = try Self.fileNames(path, operation) else {
            self = .absentOrEmpty
            return
        }
        guard names.contains(FileNames.current) else {
            self = names.contains(where: FileNames.mayHoldData) ? .damaged : .absentOrEmpty
            return
        }
        guard let manifest = try Self.currentManifest(path, operation), names.contains(manifest) else {
            self = .damaged
            return
        }
        self = .database
    }

    /// Returns the file names in the directory; nil if the directory does not exist.
    private static func fileNames(_ path: String, _ operation: String) throws(LevelDBError) -> Set<String>? {
        do throws(FileError) { return Set(try FileSystem.list(path)) } catch {
            if error.number == ENOENT { return nil }
            errno = error.number
            throw LevelDBError(systemCall: "opendir", operation: operation, path: path)
        }
    }

    /// Returns the name of the manifest in `CURRENT`; nil if the file is not exactly such a name and a newline.
    private static func currentManifest(_ path: String, _ operation: String) throws(LevelDBError) -> String? {
        do throws(FileError) { return try ManifestScan.current(path) } catch {
            errno = error.number
            throw LevelDBError(systemCall: "\(error.operation) CURRENT", operation: operation, path: path)
        }
    }
}
