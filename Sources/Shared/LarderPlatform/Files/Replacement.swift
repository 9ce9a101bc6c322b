/// New content of a small file, written and synced under another name in the same directory. A rename puts it in place.
///
/// With a spare, a file with that other name always exists and has its disk space already, so a full disk does not
/// prevent the replacement.
///
/// For one thread at a time, and one replacement of a file at a time.
package final class Replacement {
    private let path: String
    /// Opened before any change, so that a lack of descriptors cannot leave the replacement half done.
    private let directory: Int32
    private let keepsSpare: Bool

    /// The reserved space: a block of the usual file systems.
    private static let spareBytes = 4096

    /// Writes the new content. An error leaves the old content in place.
    package init(of path: String, with bytes: [UInt8], keepsSpare: Bool = false) throws(FileError) {
        self.path = path
        self.keepsSpare = keepsSpare
        let parent = FileSystem.parent(path)
        directory = FileSystem.openFile(parent, O_RDONLY | O_CLOEXEC)
        guard directory >= 0 else { throw FileError(operation: "open", path: parent, number: errno) }
        // From here on, `deinit` cleans up after an error.
        do throws(FileError) {
            try Self.write(bytes, to: Self.spare(of: path))
        } catch {
            // After a failed fsync the file's content on the disk is unknown. The next attempt creates a new file.
            if !keepsSpare || !error.isFullDisk { unlink(Self.spare(of: path)) }
            throw error
        }
    }

    deinit { if directory >= 0 { close(directory) } }

    /// Replaces the old content by the new one. An error leaves the old content.
    /// - Returns: nil, or the reason why the directory could not be synced. Then the new content is in place, and a
    ///   machine failure may restore the old one.
    package func putInPlace() throws(FileError) -> FileError? {
        try FileSystem.rename(Self.spare(of: path), to: path)
        // Twice, because a signal or a full queue may have been the only problem.
        for _ in 0..<2 where fsync(directory) == 0 {
            if keepsSpare { Self.keepSpare(for: path) }
            return nil
        }
        return FileError(operation: "fsync", path: FileSystem.parent(path), number: errno)
    }

    /// Reserves space for the next replacement of a file, if the disk has any.
    package static func keepSpare(for path: String) {
        let file = FileSystem.openFile(spare(of: path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { return }
        defer { close(file) }
        #if canImport(Darwin)
            _ = try? FileSystem.writeAll([UInt8](repeating: 0, count: spareBytes), descriptor: file, path: path)
        #else
            posix_fallocate(file, 0, off_t(spareBytes))
        #endif
    }

    /// The suffix of the new content's file name until it is in place, and of the spare's.
    package static let suffix = ".new"

    private static func spare(of path: String) -> String { path + suffix }

    private static func write(_ bytes: [UInt8], to spare: String) throws(FileError) {
        // Do not truncate it first, which would free its space.
        let file = FileSystem.openFile(spare, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard file >= 0 else { throw FileError(operation: "create", path: spare, number: errno) }
        defer { close(file) }
        try FileSystem.writeAll(bytes, descriptor: file, path: spare)
        guard ftruncate(file, off_t(bytes.count)) == 0 else {
            throw FileError(operation: "truncate", path: spare, number: errno)
        }
        guard fsync(file) == 0 else { throw FileError(operation: "fsync", path: spare, number: errno) }
    }
}
