import CLarderLevelDB
import LarderLevelDBFormat
import LarderPlatform

/// A position in the sorted entries of a database. It can move forward and backward. It sees the database as of its
/// creation, or as of its snapshot. It retains the database, and keeps it from being closed.
///
/// - Before the first seek, after moving beyond either end, and after an error, the cursor is at no entry: ``isValid``
///   is false, and only a seek can move to an entry.
/// - Reaching the end is not an error. If LevelDB reports an error, the call throws; an error never looks like the end.
/// - After an error, such as a damaged block, create a new cursor: LevelDB's iterator keeps the error as long as it
///   exists.
/// - While a cursor is open, LevelDB can free neither the files nor the memory that the cursor reads. So do not keep a
///   cursor for long, and call ``close()`` early.
/// - If the `yields` closure of the database requests it, the cursor releases its files at the end of a merge. It then
///   continues over its snapshot, which must still be open. Without a snapshot it continues over the current entries.
///   The entry at the cursor's position stays readable.
///
/// Not thread-safe: different threads may use it, but only one at a time.
package final class Cursor {
    /// Whether the cursor is at an entry.
    package private(set) var isValid = false

    @usableFromInline let database: Database
    /// The holder of LevelDB's iterator; nil after ``close()``.
    @usableFromInline var slot: IteratorSlot?
    private let options: ReadOptions
    private let prefix: [UInt8]
    /// The first key after all keys that begin with `prefix`; nil if there is none.
    private let prefixEnd: [UInt8]?

    /// - Parameter handle: an iterator of `database`. The caller has already counted this cursor with
    ///   ``Database/cursorDidOpen()``.
    init(_ database: Database, handle: OpaquePointer?, _ options: ReadOptions, prefix: [UInt8]) {
        self.database = database
        let slot = IteratorSlot(handle)
        self.slot = slot
        self.options = options
        database.gate.add(slot)
        self.prefix = prefix
        prefixEnd = ByteOrder.successor(ofPrefix: prefix)
    }

    deinit { close() }

    /// Releases the files. Idempotent. Afterwards ``isValid`` is false and every move throws `.closed`.
    package func close() {
        guard let slot else { return }
        isValid = false
        database.gate.reads.withReadLock {
            if let handle = slot.handle { leveldb_iter_destroy(handle) }
            slot.handle = nil
        }
        database.gate.remove(slot)
        self.slot = nil
        database.cursorDidClose()
    }

    // MARK: Moving

    /// Moves to the first key; if the cursor has a prefix, to the first key with this prefix.
    package func seekToFirst() throws(LevelDBError) {
        try move("seek") { handle, _ in
            if prefix.isEmpty {
                leveldb_iter_seek_to_first(handle)
            } else {
                prefix.withUnsafeBytes { leveldb_iter_seek(handle, $0.characters, $0.count) }
            }
        }
    }

    /// Moves to the last key; if the cursor has a prefix, to the last key with this prefix.
    package func seekToLast() throws(LevelDBError) { try move("seek") { handle, _ in moveToLast(handle) } }

    /// Moves to the first key that is `key` or greater.
    package func seek(to key: UnsafeRawBufferPointer) throws(LevelDBError) {
        try move("seek", key) { handle, _ in
            if Self.compare(key, prefix) < 0 {
                prefix.withUnsafeBytes { leveldb_iter_seek(handle, $0.characters, $0.count) }
            } else {
                leveldb_iter_seek(handle, key.characters, key.count)
            }
        }
    }

    /// Moves to the first key that is `key` or greater.
    package func seek(to key: [UInt8]) throws(LevelDBError) {
        try key.withRawBytes { (key) throws(LevelDBError) in try seek(to: key) }
    }

    /// Moves to the last key that is `key` or less.
    package func seekBackward(to key: UnsafeRawBufferPointer) throws(LevelDBError) {
        try move("seek", key) { handle, _ in
            if let prefixEnd, Self.compare(key, prefixEnd) >= 0 {
                moveToLast(handle)
            } else {
                leveldb_iter_seek(handle, key.characters, key.count)
                if leveldb_iter_valid(handle) == 0 {
                    leveldb_iter_seek_to_last(handle)
                } else if ByteOrder.compare(IteratorSlot.key(handle), key) != 0 {
                    leveldb_iter_prev(handle)
                }
            }
        }
    }

    /// Moves to the last key that is `key` or less.
    package func seekBackward(to key: [UInt8]) throws(LevelDBError) {
        try key.withRawBytes { (key) throws(LevelDBError) in try seekBackward(to: key) }
    }

    /// Moves to the next greater key. Throws `.invalidArgument` if the cursor is not at an entry.
    package func next() throws(LevelDBError) {
        _ = try entrySlot("next")
        try move("next") { handle, left in
            guard let left else { return leveldb_iter_next(handle) }
            left.withUnsafeBytes { leveldb_iter_seek(handle, $0.characters, $0.count) }
            // A new iterator is at the entry that the cursor leaves, or at the next one if that entry was removed.
            if leveldb_iter_valid(handle) != 0, Self.compare(IteratorSlot.key(handle), left) == 0 {
                leveldb_iter_next(handle)
            }
        }
    }

    /// Moves to the next smaller key. Throws `.invalidArgument` if the cursor is not at an entry.
    package func previous() throws(LevelDBError) {
        _ = try entrySlot("previous")
        try move("previous") { handle, left in
            guard let left else { return leveldb_iter_prev(handle) }
            left.withUnsafeBytes { leveldb_iter_seek(handle, $0.characters, $0.count) }
            if leveldb_iter_valid(handle) != 0 { leveldb_iter_prev(handle) } else { leveldb_iter_seek_to_last(handle) }
        }
    }

    /// Passes the key and the value of the present entry, and then those of the entries after it, to `body`, until it
    /// returns false or there are no more. The cursor stays at the entry for which `body` returned false. Takes the
    /// gate's lock once for all entries, so pass only some, for example 64. Does nothing if the cursor is at no entry.
    ///
    /// Errors are thrown at the end: if a block is damaged, entries after it may have been passed to `body`.
    /// - Parameter body: must not use the database, and must not block.
    package func walk(
        backward: Bool = false, _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool
    ) throws(LevelDBError) {
        let slot = try openSlot("next")
        while isValid {
            let isDone = try database.gate.reads.withReadLock { () throws(LevelDBError) in
                guard let handle = slot.handle, slot.place == nil else { return false }
                var key = IteratorSlot.key(handle)
                while body(key, IteratorSlot.value(handle)) {
                    if backward { leveldb_iter_prev(handle) } else { leveldb_iter_next(handle) }
                    guard leveldb_iter_valid(handle) != 0 else { break }
                    key = IteratorSlot.key(handle)
                    guard Self.hasPrefix(key, prefix) else { break }
                }
                // LevelDB's iterator keeps an error.
                try checkPosition(handle, "next")
                return true
            }
            if isDone { return }
            // The gate has closed the iterator, and kept the entry.
            guard let left = slot.place else { throw error(.closed, "the cursor was closed", "next") }
            let continues = left.key.withUnsafeBytes { key in left.value.withUnsafeBytes { body(key, $0) } }
            guard continues else { return }
            if backward { try previous() } else { try next() }
        }
    }

    // MARK: Reading

    /// Passes the key to `body` without copying. The bytes are valid until the cursor moves. Throws `.invalidArgument`
    /// if the cursor is not at an entry. `body` must not use the database, and must not block.
    @inlinable
    package func withKey<Result>(_ body: (UnsafeRawBufferPointer) -> Result) throws(LevelDBError) -> Result {
        let slot = try entrySlot("key")
        return database.gate.reads.withReadLock {
            guard let left = slot.place else { return body(IteratorSlot.key(slot.handle)) }
            return left.key.withUnsafeBytes(body)
        }
    }

    /// Passes the value to `body` without copying, under the same rules as ``withKey(_:)``.
    @inlinable
    package func withValue<Result>(_ body: (UnsafeRawBufferPointer) -> Result) throws(LevelDBError) -> Result {
        let slot = try entrySlot("value")
        return database.gate.reads.withReadLock {
            guard let left = slot.place else { return body(IteratorSlot.value(slot.handle)) }
            return left.value.withUnsafeBytes(body)
        }
    }

    /// A copy of the key. The cursor must be at an entry (``isValid``); otherwise this is a programming error.
    package var key: [UInt8] {
        guard let key = try? withKey({ [UInt8]($0) }) else {
            preconditionFailure("key of a cursor that is at no entry")
        }
        return key
    }

    /// A copy of the value. The cursor must be at an entry (``isValid``); otherwise this is a programming error.
    package var value: [UInt8] {
        guard let value = try? withValue({ [UInt8]($0) }) else {
            preconditionFailure("value of a cursor that is at no entry")
        }
        return value
    }

    // MARK: Internals

    private func openSlot(_ operation: StaticString) throws(LevelDBError) -> IteratorSlot {
        if let slot { return slot }
        throw error(.closed, "the cursor was closed", operation)
    }

    /// Returns the iterator's holder. Throws `.invalidArgument` if the cursor is not at an entry.
    @usableFromInline
    func entrySlot(_ operation: StaticString) throws(LevelDBError) -> IteratorSlot {
        let slot = try openSlot(operation)
        if !isValid { throw error(.invalidArgument, "the cursor is not at an entry", operation) }
        return slot
    }

    private func error(_ code: LevelDBError.Code, _ message: String, _ operation: StaticString) -> LevelDBError {
        LevelDBError(code: code, message: message, operation: operation.description, path: database.path)
    }

    /// Moves the iterator with `body`. If the iterator was closed by the gate, creates a new one first.
    /// - Parameter body: receives the iterator. If the iterator is new, also receives the key of the entry at which the
    ///   cursor was; otherwise nil.
    private func move(
        _ operation: StaticString, _ key: UnsafeRawBufferPointer? = nil, _ body: (OpaquePointer, [UInt8]?) -> Void
    ) throws(LevelDBError) {
        let slot = try openSlot(operation)
        while true {
            let isDone = try database.gate.reads.withReadLock { () throws(LevelDBError) in
                guard let handle = slot.handle else { return false }
                let left = slot.place
                slot.place = nil
                body(handle, left?.key)
                try checkPosition(handle, operation, key)
                return true
            }
            if isDone { return }
            try database.renew(slot, options)
        }
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

    /// Checks for an error after a move, and sets ``isValid``. LevelDB's iterator skips a block that it cannot read, so
    /// there may be an error although the iterator is at an entry.
    @inline(__always)
    private func checkPosition(
        _ handle: OpaquePointer, _ operation: StaticString, _ key: UnsafeRawBufferPointer? = nil
    ) throws(LevelDBError) {
        isValid = false
        try checked(operation, path: database.path, key: key) { leveldb_iter_get_error(handle, $0) }
        isValid =
            leveldb_iter_valid(handle) != 0 && (prefix.isEmpty || Self.hasPrefix(IteratorSlot.key(handle), prefix))
    }

    private static func hasPrefix(_ key: UnsafeRawBufferPointer, _ prefix: [UInt8]) -> Bool {
        guard key.count >= prefix.count, let start = key.baseAddress else { return prefix.isEmpty }
        return memcmp(start, prefix, prefix.count) == 0
    }

    private static func compare(_ left: UnsafeRawBufferPointer, _ right: [UInt8]) -> Int {
        right.withUnsafeBytes { ByteOrder.compare(left, $0) }
    }
}
