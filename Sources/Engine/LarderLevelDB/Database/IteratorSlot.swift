import CLarderLevelDB

/// The holder of a cursor's LevelDB iterator. ``VersionGate`` may close the iterator while the cursor is at an entry;
/// the current entry is then kept here, and the cursor creates a new iterator when it moves.
///
/// The cursor's owner uses the slot with the gate's lock held for reading; ``VersionGate`` uses it with the lock held
/// for writing.
@usableFromInline
final class IteratorSlot {
    @usableFromInline var handle: OpaquePointer?
    /// The entry at which the iterator was when it was closed; nil if it was at no entry, or the cursor has moved
    /// since.
    @usableFromInline var place: (key: [UInt8], value: [UInt8])?

    init(_ handle: OpaquePointer?) { self.handle = handle }

    func park() {
        guard let handle else { return }
        if leveldb_iter_valid(handle) != 0 {
            place = ([UInt8](Self.key(handle)), [UInt8](Self.value(handle)))
        }
        leveldb_iter_destroy(handle)
        self.handle = nil
    }

    @usableFromInline
    static func key(_ handle: OpaquePointer?) -> UnsafeRawBufferPointer {
        var count = 0
        let start = leveldb_iter_key(handle, &count)
        return UnsafeRawBufferPointer(start: start, count: count)
    }

    @usableFromInline
    static func value(_ handle: OpaquePointer?) -> UnsafeRawBufferPointer {
        var count = 0
        let start = leveldb_iter_value(handle, &count)
        return UnsafeRawBufferPointer(start: start, count: count)
    }
}
