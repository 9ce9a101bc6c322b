import CLevelDB
import Platform

/// Moves over entries in the order of their keys, forward and backward, over one unchanging state of the database.
/// Keeps its database alive, and keeps it from being closed.
///
/// - Before the first seek, after moving off either end, and after an error it is at no entry: ``isValid`` is false,
///   and only a seek leads to one.
/// - The end is not an error, and an error is never taken for the end: the call that meets it throws.
/// - After an error, such as a damaged block, make a new cursor: LevelDB keeps the error as long as this one exists.
/// - An open cursor pins files and memory: limit its lifetime, and call ``close()`` early.
///
/// Single owner: it may move between threads, but only one uses it at a time.
package final class Cursor {
    /// Whether the cursor is at an entry.
    package private(set) var isValid = false

    private let database: Database
    private var handle: OpaquePointer?
    private let prefix: [UInt8]
    /// The first key after all that begin with `prefix`; nil if there is none.
    private let prefixEnd: [UInt8]?

    /// - Parameter handle: an iterator of `database`, which counts this cursor already.
    init(_ database: Database, handle: OpaquePointer, prefix: [UInt8]) {
        self.database = database
        self.handle = handle
        self.prefix = prefix
        prefixEnd = Self.successor(ofPrefix: prefix)
    }

    deinit { close() }

    /// Releases the files. Idempotent. Afterwards ``isValid`` is false and every move throws `.closed`.
    package func close() {
        guard let handle else { return }
        isValid = false
        leveldb_iter_destroy(handle)
        self.handle = nil
        database.cursorDidClose()
    }

    // MARK: Moving

    /// Goes to the first key, with a prefix to the first that has it.
    package func seekToFirst() throws(LevelDBError) {
        let handle = try openHandle("seek")
        if prefix.isEmpty {
            leveldb_iter_seek_to_first(handle)
        } else {
            prefix.withUnsafeBytes { leveldb_iter_seek(handle, $0.characters, $0.count) }
        }
        try settle(handle, "seek")
    }

    /// Goes to the last key, with a prefix to the last that has it.
    package func seekToLast() throws(LevelDBError) {
        let handle = try openHandle("seek")
        moveToLast(handle)
        try settle(handle, "seek")
    }

    /// Goes to the first key that is `key` or greater.
    package func seek(to key: UnsafeRawBufferPointer) throws(LevelDBError) {
        let handle = try openHandle("seek")
        if Self.compare(key, prefix) < 0 {
            prefix.withUnsafeBytes { leveldb_iter_seek(handle, $0.characters, $0.count) }
        } else {
            leveldb_iter_seek(handle, key.characters, key.count)
        }
        try settle(handle, "seek", key)
    }

    /// Goes to the first key that is `key` or greater.
    package func seek(to key: [UInt8]) throws(LevelDBError) {
        try key.withRawBytes { (key) throws(LevelDBError) in try seek(to: key) }
    }

    /// Goes to the last key that is `key` or less.
    package func seekBackward(to key: UnsafeRawBufferPointer) throws(LevelDBError) {
        let handle = try openHandle("seek")
        if let prefixEnd, Self.compare(key, prefixEnd) >= 0 {
            moveToLast(handle)
        } else {
            leveldb_iter_seek(handle, key.characters, key.count)
            if leveldb_iter_valid(handle) == 0 {
                leveldb_iter_seek_to_last(handle)
            } else if Self.compare(Self.key(handle), key) != 0 {
                leveldb_iter_prev(handle)
            }
        }
        try settle(handle, "seek", key)
    }

    /// Goes to the last key that is `key` or less.
    package func seekBackward(to key: [UInt8]) throws(LevelDBError) {
        try key.withRawBytes { (key) throws(LevelDBError) in try seekBackward(to: key) }
    }

    /// Goes to the next greater key. Throws `.invalidArgument` if the cursor is at no entry.
    package func next() throws(LevelDBError) {
        let handle = try currentHandle("next")
        leveldb_iter_next(handle)
        try settle(handle, "next")
    }

    /// Goes to the next smaller key. Throws `.invalidArgument` if the cursor is at no entry.
    package func previous() throws(LevelDBError) {
        let handle = try currentHandle("previous")
        leveldb_iter_prev(handle)
        try settle(handle, "previous")
    }

    // MARK: Reading

    /// Gives `body` the key without copying; the bytes are valid until the cursor moves. Throws `.invalidArgument` if
    /// the cursor is at no entry. `body` must not move or close the cursor.
    @inlinable
    package func withKey<Result>(_ body: (UnsafeRawBufferPointer) -> Result) throws(LevelDBError) -> Result {
        body(try currentKey())
    }

    /// Gives `body` the value without copying, under the same rules as ``withKey(_:)``.
    @inlinable
    package func withValue<Result>(_ body: (UnsafeRawBufferPointer) -> Result) throws(LevelDBError) -> Result {
        body(try currentValue())
    }

    /// A copy of the key. The cursor must be at an entry (``isValid``); otherwise this is a programming error.
    package var key: [UInt8] {
        guard isValid, let handle else { preconditionFailure("key of a cursor that is at no entry") }
        return [UInt8](Self.key(handle))
    }

    /// A copy of the value. The cursor must be at an entry (``isValid``); otherwise this is a programming error.
    package var value: [UInt8] {
        guard isValid, let handle else { preconditionFailure("value of a cursor that is at no entry") }
        return [UInt8](Self.value(handle))
    }

    @usableFromInline
    func currentKey() throws(LevelDBError) -> UnsafeRawBufferPointer { Self.key(try currentHandle("key")) }

    @usableFromInline
    func currentValue() throws(LevelDBError) -> UnsafeRawBufferPointer { Self.value(try currentHandle("value")) }

    // MARK: Internals

    private func openHandle(_ operation: StaticString) throws(LevelDBError) -> OpaquePointer {
        if let handle { return handle }
        throw error(.closed, "the cursor was closed", operation)
    }

    @inline(__always)
    private func currentHandle(_ operation: StaticString) throws(LevelDBError) -> OpaquePointer {
        let handle = try openHandle(operation)
        if isValid { return handle }
        throw error(.invalidArgument, "the cursor is at no entry", operation)
    }

    private func error(_ code: LevelDBError.Code, _ message: String, _ operation: StaticString) -> LevelDBError {
        LevelDBError(code: code, message: message, operation: operation.description, path: database.path)
    }

    private func moveToLast(_ handle: OpaquePointer) {
        guard let prefixEnd else { return leveldb_iter_seek_to_last(handle) }
        prefixEnd.withUnsafeBytes { leveldb_iter_seek(handle, $0.characters, $0.count) }
        if leveldb_iter_valid(handle) != 0 {
            leveldb_iter_prev(handle)
        } else {
            leveldb_iter_seek_to_last(handle)
        }
    }

    /// Reads the iterator's state after a move. LevelDB's iterator skips a block that it cannot read, so the error is
    /// checked even when the iterator is at an entry.
    @inline(__always)
    private func settle(
        _ handle: OpaquePointer, _ operation: StaticString, _ key: UnsafeRawBufferPointer? = nil
    ) throws(LevelDBError) {
        isValid = false
        try checked(operation, path: database.path, key: key) { leveldb_iter_get_error(handle, $0) }
        isValid = leveldb_iter_valid(handle) != 0 && (prefix.isEmpty || Self.hasPrefix(Self.key(handle), prefix))
    }

    @inline(__always)
    private static func key(_ handle: OpaquePointer) -> UnsafeRawBufferPointer {
        var count = 0
        let start = leveldb_iter_key(handle, &count)
        return UnsafeRawBufferPointer(start: start, count: count)
    }

    @inline(__always)
    private static func value(_ handle: OpaquePointer) -> UnsafeRawBufferPointer {
        var count = 0
        let start = leveldb_iter_value(handle, &count)
        return UnsafeRawBufferPointer(start: start, count: count)
    }

    private static func hasPrefix(_ key: UnsafeRawBufferPointer, _ prefix: [UInt8]) -> Bool {
        guard key.count >= prefix.count, let start = key.baseAddress else { return prefix.isEmpty }
        return memcmp(start, prefix, prefix.count) == 0
    }

    /// Negative, 0 or positive, in LevelDB's order.
    private static func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
        let order = Int(memcmp(left.characters, right.characters, min(left.count, right.count)))
        return order != 0 ? order : left.count - right.count
    }

    private static func compare(_ left: UnsafeRawBufferPointer, _ right: [UInt8]) -> Int {
        right.withUnsafeBytes { compare(left, $0) }
    }

    /// The smallest key that is greater than all that begin with `prefix`: trailing 0xFF bytes cannot be counted up, so
    /// they go, and the byte before them is. Nothing is greater than all that begin with 0xFF bytes only.
    static func successor(ofPrefix prefix: [UInt8]) -> [UInt8]? {
        guard let last = prefix.lastIndex(where: { $0 != 0xff }) else { return nil }
        var end = Array(prefix[...last])
        end[last] += 1
        return end
    }
}
