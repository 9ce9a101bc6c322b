import LarderLevelDBFormat
import LarderPlatform

/// An error that LevelDB or this module reports: the kind, a text, the operation, the directory, and the key if there
/// is one.
///
/// An error never contains a value. It may contain a key: complete in ``key``, escaped and truncated in
/// ``description``.
package struct LevelDBError: Error, Hashable, Sendable {
    /// The kind of an error.
    package enum Code: String, Hashable, Sendable, CustomStringConvertible {
        /// The database or file does not exist. A missing *key* is not an error: reading it returns nil.
        case notFound = "not found"
        /// The files are damaged: a checksum or length is wrong, or a file is missing.
        case corruption = "corruption"
        /// LevelDB does not support the operation.
        case notSupported = "not supported"
        /// An argument is invalid, such as an option out of range.
        case invalidArgument = "invalid argument"
        /// The system reported an error: no space, no permission, no descriptors, or another process holds the lock.
        case ioError = "input/output error"
        /// The database, snapshot or cursor was already closed.
        case closed = "closed"
        /// The database cannot be closed now, because it has open snapshots or cursors.
        case busy = "busy"
        /// LevelDB reported an error of a kind that this module does not know.
        case unknown = "unknown error"

        package var description: String { rawValue }
    }

    /// The kind of the error.
    package let code: Code
    /// LevelDB's text without the kind at its beginning, or the text of a check of this module.
    package let message: String
    /// The operation that failed: "open", "get", "write", …
    package let operation: String
    /// The directory of the database.
    package let path: String
    /// The key of the call, not truncated; nil if there was no single key.
    package let key: [UInt8]?

    package init(code: Code, message: String, operation: String, path: String, key: [UInt8]? = nil) {
        (self.code, self.message, self.operation) = (code, message, operation)
        (self.path, self.key) = (path, key)
    }
}

extension LevelDBError: CustomStringConvertible {
    /// One line: `get of key "user:1" in /var/cache/x: corruption: block checksum mismatch`.
    package var description: String {
        let subject = key.map { " of key \(quoted($0))" } ?? ""
        return "\(operation)\(subject) in \(path): \(code): \(message)"
    }
}

extension LevelDBError {
    /// Creates the error for a system call that has just failed, from `errno`: `.notFound` for ENOENT, otherwise
    /// `.ioError`.
    init(systemCall: String, operation: String, path: String) {
        let number = errno
        self.init(
            code: number == ENOENT ? .notFound : .ioError,
            message: "\(systemCall): \(SystemErrorText.of(number))",
            operation: operation, path: path)
    }
}
