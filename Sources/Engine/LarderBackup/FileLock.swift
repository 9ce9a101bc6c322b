import LarderPlatform

/// An exclusive lock (flock(2)) on a file or a directory. It is released when this value is destroyed or the process
/// terminates.
struct FileLock: ~Copyable {
    private let path: String
    private let descriptor: Int32

    /// Locks a file, creating it if necessary, and writes `note`, a text about the lock's owner, to it.
    /// - Returns: nil if another owner has the lock.
    static func file(_ path: String, note: String) throws(FileError) -> FileLock? {
        guard let lock = try take(path, O_RDWR | O_CREAT | O_NONBLOCK) else { return nil }
        // The note is only for error messages, so ignore failures, for example because the disk is full.
        if ftruncate(lock.descriptor, 0) == 0 {
            try? FileSystem.writeAll(Array(note.utf8), descriptor: lock.descriptor, path: path)
        }
        return lock
    }

    /// Locks a directory. If the file system does not support locks on directories, returns a value without a lock.
    /// - Returns: nil if another owner has the lock.
    static func directory(_ path: String) throws(FileError) -> FileLock? {
        try take(path, O_RDONLY | O_DIRECTORY, isVital: false)
    }

    /// Returns the note that the lock's owner has written; nil if there is none.
    static func note(_ path: String) -> String? {
        guard let bytes = try? FileSystem.read(path, bytesMax: 4096), !bytes.isEmpty,
            let text = String(validating: bytes, as: UTF8.self)
        else { return nil }
        return String(text.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F })
    }

    private static func take(_ path: String, _ flags: Int32, isVital: Bool = true) throws(FileError) -> FileLock? {
        while true {
            let file = FileSystem.openFile(path, flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard file >= 0 else { throw FileError(operation: "open", path: path, number: errno) }
            if flock(file, LOCK_EX | LOCK_NB) != 0 {
                let number = errno
                guard !isVital, number != EWOULDBLOCK else {
                    close(file)
                    if number == EWOULDBLOCK { return nil }
                    throw FileError(operation: "lock", path: path, number: number)
                }
            }
            let lock = FileLock(path: path, descriptor: file)
            // The previous owner may have removed or renamed the file between open and flock. If so, try again.
            var opened = stat()
            if fstat(file, &opened) == 0, let named = try FileSystem.linkStatus(path), opened.st_ino == named.st_ino,
                opened.st_dev == named.st_dev
            {
                return lock
            }
        }
    }

    /// Removes the file, and then releases the lock.
    consuming func remove() { unlink(path) }

    deinit {
        // Unlock explicitly: a child process between fork and exec has a copy of the descriptor, so closing the
        // descriptor here would not release the lock.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}
