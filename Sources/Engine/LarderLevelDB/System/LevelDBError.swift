import LarderPlatform

/// An error that LevelDB or this module reports: the kind, a text, the operation, the directory, and the key if there
/// is one.
///
/// An error never contains a value. It may contain a key: complete in ``key``, escaped and truncated in
/// ``description``.
package struct LevelDBError: Error, Hashable, Sendable {
    /// The kind of an error. It is a struct and not an enum, so that new kinds do not break switch statements of
    /// callers.
    package struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Kind: String {
            case notFound = "not found"
            case corruption = "corruption"
            case notSupported = "not supported"
            case invalidArgument = "invalid argument"
            case ioError = "input/output error"
            case closed = "closed"
            case busy = "busy"
            case unknown = "unknown error"
        }

        private let kind: Kind

        /// The database or file does not exist. A missing *key* is not an error: reading it returns nil.
        package static let notFound = Code(kind: .notFound)
        /// The files are damaged: a checksum or length is wrong, or a file is missing.
        package static let corruption = Code(kind: .corruption)
        /// LevelDB does not support the operation.
        package static let notSupported = Code(kind: .notSupported)
        /// An argument is invalid, such as an option out of range.
        package static let invalidArgument = Code(kind: .invalidArgument)
        /// The system reported an error: no space, no permission, no descriptors, or another process holds the lock.
        package static let ioError = Code(kind: .ioError)
        /// The database, snapshot or cursor was already closed.
        package static let closed = Code(kind: .closed)
        /// The database cannot be closed now, because it has open snapshots or cursors.
        package static let busy = Code(kind: .busy)
        /// LevelDB reported an error of a kind that this module does not know.
        package static let unknown = Code(kind: .unknown)

        package var description: String { kind.rawValue }
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
        self.code = code
        self.message = message
        self.operation = operation
        self.path = path
        self.key = key
    }
}

extension LevelDBError: CustomStringConvertible {
    /// The maximum number of bytes of a key in ``description``.
    static let describedKeyBytes = 64

    /// One line: `get of key "user:1" in /var/cache/x: corruption: block checksum mismatch`.
    package var description: String {
        let subject = key.map { " of key \"\(Self.printable($0))\"" } ?? ""
        return "\(operation)\(subject) in \(path): \(code): \(message)"
    }

    /// Escapes a key: ASCII stays as it is, other bytes become `\xNN`. Bytes after the first ``describedKeyBytes`` are
    /// dropped, and their number is appended.
    static func printable(_ key: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".unicodeScalars)
        var text = String.UnicodeScalarView()
        for byte in key.prefix(describedKeyBytes) {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                text.append("\\")
                text.append(Unicode.Scalar(byte))
            case 0x20...0x7e:
                text.append(Unicode.Scalar(byte))
            default:
                text.append("\\")
                text.append("x")
                text.append(digits[Int(byte >> 4)])
                text.append(digits[Int(byte & 15)])
            }
        }
        let shown = String(text)
        return key.count > describedKeyBytes ? "\(shown)… (\(key.count) bytes)" : shown
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
