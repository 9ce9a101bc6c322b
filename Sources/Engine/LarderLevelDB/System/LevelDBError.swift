/// An error of LevelDB or of its use: the kind, LevelDB's text, the operation, and its object.
///
/// Values never appear in an error. A key does: escaped and cut in ``description``, whole in ``key``.
package struct LevelDBError: Error, Hashable, Sendable {
    /// The kind of an error. A struct, so that a new kind breaks no caller's switch.
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

        /// There is nothing to open. A missing *key* is not an error: reading it gives nil.
        package static let notFound = Code(kind: .notFound)
        /// The files are damaged: a checksum or length is wrong, or a file is missing.
        package static let corruption = Code(kind: .corruption)
        /// LevelDB does not support this.
        package static let notSupported = Code(kind: .notSupported)
        /// The argument has no meaning, such as an option out of range.
        package static let invalidArgument = Code(kind: .invalidArgument)
        /// The operating system refused: no space, no permission, no descriptors, or another process holds the lock.
        package static let ioError = Code(kind: .ioError)
        /// The database, snapshot or cursor was closed before.
        package static let closed = Code(kind: .closed)
        /// The database cannot be closed now, because snapshots or cursors of it are open.
        package static let busy = Code(kind: .busy)
        /// LevelDB reported an error of a kind that this module does not know.
        package static let unknown = Code(kind: .unknown)

        package var description: String { kind.rawValue }
    }

    /// The kind.
    package let code: Code
    /// LevelDB's text without its leading kind, or this module's for its own checks.
    package let message: String
    /// The call: "open", "get", "write", …
    package let operation: String
    /// The directory of the database.
    package let path: String
    /// The key of the call, whole; nil if there was no single key.
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
    /// The most bytes of a key in ``description``.
    static let describedKeyBytes = 64

    /// One line: `get of key "user:1" in /var/cache/x: corruption: block checksum mismatch`.
    package var description: String {
        let subject = key.map { " of key \"\(Self.printable($0))\"" } ?? ""
        return "\(operation)\(subject) in \(path): \(code): \(message)"
    }

    /// ASCII stays as it is, other bytes become `\xNN`; beyond ``describedKeyBytes`` bytes are cut and counted.
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
