/// Replaces the content of a small file: writes and syncs a second file in the same directory, and then renames it.
///
/// If `keepsSpare` is set, the second file (the spare) always exists, with 4 KiB of disk space. So a small file can be
/// replaced even if the disk is full.
///
/// For one thread at a time. At most one replacement of a file may exist at a time.
package final class Replacement {
    private let path: String
    /// The directory's descriptor, for the sync. Opened first: if no descriptor is free, nothing has been changed yet.
    private let directory: Int32
    private let keepsSpare: Bool

    /// The space reserved for the spare in bytes: one block of most file systems.
    package static let spareBytes = 4096

    /// Writes the new content to the second file. The old content stays in place, also after an error.
    package init(of path: String, with bytes: [UInt8], keepsSpare: Bool = false) throws(FileError) {
        self.path = path
        self.keepsSpare = keepsSpare
        let parent = FileSystem.parent(path)
        directory = FileSystem.openFile(parent, O_RDONLY | O_CLOEXEC)
        guard directory >= 0 else { throw FileError(operation: "open", path: parent, number: errno) }
        // All properties are initialized, so `deinit` closes the directory after an error.
        do throws(FileError) {
            try Self.write(bytes, to: Self.spare(of: path))
        } catch {
            // Remove the file, because its content on the disk is unknown after a failed fsync: the next attempt must
            // use a new file. But if the disk is full, keep the spare's reserved space.
            if !keepsSpare || !error.isFullDisk { unlink(Self.spare(of: path)) }
            throw error
        }
    }

    deinit { if directory >= 0 { close(directory) } }

    /// Puts the new content in place. If this throws, the old content is still in place.
    /// - Returns: the error if the directory could not be synced, else nil. After such an error the new content is in
    ///   place, but a machine failure may bring the old content back.
    package func putInPlace() throws(FileError) -> FileError? {
        try FileSystem.rename(Self.spare(of: path), to: path)
        // Try twice, because the first error may be temporary, for example an interruption by a signal.
        for _ in 0..<2 where fsync(directory) == 0 {
            if keepsSpare { Self.keepSpare(for: path) }
            return nil
        }
        return FileError(operation: "fsync", path: FileSystem.parent(path), number: errno)
    }

    /// Creates the spare for the next replacement of a file, if it is missing and the disk has space. Ignores errors.
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

    /// The suffix of the second file's name.
    package static let suffix = ".new"

    private static func spare(of path: String) -> String { path + suffix }

    private static func write(_ bytes: [UInt8], to spare: String) throws(FileError) {
        // Open without O_TRUNC, which would free the spare's reserved space.
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
