import LarderLevelDB
import LarderPlatform

/// An error of the engine or the library.
///
/// Programs compare `code`, the kind of the error. `message` describes the problem and how to fix it. Messages contain
/// no stored values, and keys only in a shortened form.
public struct LarderError: Error, Sendable {
    /// A kind of error. New kinds may be added without breaking source compatibility.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        public let description: String
        private init(_ name: String) { description = name }

        /// An argument, such as a name or an option, is outside the allowed range, or a key or value is too long.
        public static let invalidArgument = Code("invalidArgument")
        /// Another process has opened the larder; the message contains its process ID and socket.
        public static let larderHeld = Code("larderHeld")
        /// The database's files are damaged. Nothing was changed: salvage the database, or set it aside.
        public static let damaged = Code("damaged")
        /// The database was written by a newer version of Larder.
        public static let newerFormat = Code("newerFormat")
        /// The operating system reported an error: no space, too many open files, no permission, a device error.
        public static let io = Code("io")
        /// An earlier write failed, and no write is accepted until the database is reopened.
        public static let writesSuspended = Code("writesSuspended")
        /// The write was not committed, because it or another write of the same commit failed.
        public static let commitFailed = Code("commitFailed")
        /// The database was purged after this snapshot, cursor or sequence was created.
        public static let purged = Code("purged")
        /// The database was deleted, or its files were set aside, after this handle was created.
        public static let deleted = Code("deleted")
        /// The database was reopened after a failed write. Earlier snapshots and cursors are no longer valid.
        public static let invalidated = Code("invalidated")
        /// The handle or the larder was closed.
        public static let closed = Code("closed")
        /// The larder already has the maximum number of databases.
        public static let tooManyDatabases = Code("tooManyDatabases")
        /// There is no such database.
        public static let noSuchDatabase = Code("noSuchDatabase")
        /// There is no fresh entry to edit.
        public static let noSuchEntry = Code("noSuchEntry")
        /// The process was forked after the larder was opened; the child must not use it.
        public static let forked = Code("forked")
        /// A model could not be encoded.
        public static let encoding = Code("encoding")
        /// A stored value does not have the requested type.
        public static let decoding = Code("decoding")
        /// A filter closure of the caller threw an error, which is in `underlying`.
        public static let filterFailed = Code("filterFailed")
        /// Too many leases are in use, or too many callers are waiting for values that other callers are fetching.
        public static let tooManyLeases = Code("tooManyLeases")
        /// An update has used all its attempts, because the entry was changed during each of them.
        public static let conflict = Code("conflict")
        /// The closure of an update has updated the same entry, so the update would conflict with itself.
        public static let recursion = Code("recursion")
    }

    /// The kind of the error, for programs.
    public let code: Code
    /// What is wrong and how to fix it, in words for people.
    public let message: String
    /// The operation that failed: "open", "get", "commit", …
    public let operation: String
    /// The name of the database, if the error concerns one.
    public let database: String?
    /// The key, printable and cut to 64 bytes, if the error concerns one.
    public let key: String?
    /// The underlying error, if there is one.
    public let underlying: (any Error)?

    /// The number of the system's error that caused this error; nil if unknown.
    package var systemErrorNumber: Int32? {
        (underlying as? FileError)?.number ?? (underlying as? LevelDBError)?.systemErrorNumber
            ?? (underlying as? LarderError)?.systemErrorNumber
    }

    package init(
        _ code: Code, _ message: String, operation: String, database: String? = nil, key: String? = nil,
        underlying: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.operation = operation
        self.database = database
        self.key = key
        self.underlying = underlying
    }

    /// Runs `body`; an error becomes one of the engine.
    static func wrapping<Result>(
        _ operation: String, database: String? = nil, _ body: () throws(FileError) -> Result
    ) throws(LarderError) -> Result {
        do throws(FileError) {
            return try body()
        } catch {
            throw LarderError(.io, error.description, operation: operation, database: database, underlying: error)
        }
    }

    init(_ error: LevelDBError, operation: String, database: String, key: String? = nil) {
        let code: Code =
            switch error.code {
            case .corruption: .damaged
            case .closed: .closed
            case .invalidArgument: .invalidArgument
            default: .io
            }
        self.init(code, error.message, operation: operation, database: database, key: key, underlying: error)
    }
}

extension LarderError: CustomStringConvertible {
    public var description: String {
        var text = "\(operation)"
        if let database { text += " in database '\(database)'" }
        if let key { text += ", key '\(key)'" }
        return text + ": " + message
    }
}
