import LarderPlatform

/// The operations of one commit group, encoded as one frame of the journal.
///
/// Uses raw memory for speed: every write adds to a batch, and the checks and moves of an array would cost more than
/// copying the bytes. Batches are reused: ``clear()`` keeps the memory up to a limit.
///
/// An operation that cannot be added (too long, out of memory, decreasing sequence) makes the batch defective.
/// ``Journal/append(_:)`` throws an error for a defective batch, so the operation is not lost silently.
///
/// Used by one thread at a time. `@unchecked Sendable`: threads pass it on with a lock held.
final class JournalBatch: @unchecked Sendable {
    /// The maximum amount of memory that ``clear()`` keeps, in bytes.
    static let keptBytesMax = 4 << 20
    /// The maximum number of changes whose memory it keeps.
    private static let keptChangesMax = 64
    private static let initialBytes = 64 << 10

    /// The sequence of the first operation; 0 while there is none.
    private(set) var firstSequence: UInt64 = 0
    /// The sequence of the last operation; 0 while there is none.
    private(set) var lastSequence: UInt64 = 0
    private(set) var operationCount = 0
    /// Whether no operation of the batch stores a record.
    private(set) var removesOnly = true
    /// The changes to publish when the batch is committed. Filled only if there are subscribers.
    var changes: [EntryChange] = []
    /// For a change of a whole database: called with the last sequence when the batch is committed.
    var committed: ((UInt64) -> Void)?
    /// Whether the change log was notified that the changes are about to be committed.
    var isPrepared = false
    /// The errno that keeps this batch from being written; 0 if there is none.
    private(set) var defect: Int32 = 0

    // `memory` has `capacity` bytes and is used up to `end`: first the space for the header, then the payload.
    // Invariant: `memory` is nil only while `capacity` is 0.
    private var memory: UnsafeMutableRawPointer?
    private var capacity = 0
    private var end = JournalFormat.frameHeaderBytes
    private var selectedNumber: Int?
    /// The payload of the last record, if the payload is already in a file. No operation can follow this record.
    private(set) var staged: StagedFrame?

    deinit { free(memory) }

    var isEmpty: Bool { operationCount == 0 && defect == 0 }

    /// The bytes of the frame so far, including its header.
    var byteCount: Int { end + (staged?.byteCount ?? 0) }

    /// The number of payload bytes in memory, without a staged payload.
    var payloadByteCount: Int { end - JournalFormat.frameHeaderBytes }

    /// The size of the allocated memory, in bytes.
    var memoryByteCount: Int { capacity }

    /// Sets the database and its epoch (the version of its files) for the following operations.
    /// - Parameter number: identifies the combination of database and epoch. If the number is the same as in the last
    ///   call, nothing is added.
    func select(database: String, number: Int, epoch: UInt64) {
        if selectedNumber == number { return }
        var database = database
        database.withUTF8 { name in
            guard (1...JournalFormat.databaseNameBytesMax).contains(name.count) else { return fail(EINVAL) }
            guard let place = reserve(10 + name.count) else { return }
            place.storeBytes(of: JournalFormat.Kind.database, as: UInt8.self)
            place.storeBytes(of: UInt8(name.count), toByteOffset: 1, as: UInt8.self)
            place.storeBytes(of: epoch.bigEndian, toByteOffset: 2, as: UInt64.self)
            copy(UnsafeRawBufferPointer(name), to: place + 10)
            selectedNumber = number
        }
    }

    /// Adds the operation that stores a record. Sequences must not decrease; the operations of one unit share a
    /// sequence.
    func put(key: UnsafeRawBufferPointer, record: UnsafeRawBufferPointer, sequence: UInt64) {
        guard key.count <= JournalFormat.keyBytesMax, record.count <= JournalFormat.recordBytesMax else {
            return fail(EMSGSIZE)
        }
        // Both counts are bounded, so the sum cannot overflow.
        guard note(sequence), let place = reserve(9 + key.count + record.count) else { return }
        removesOnly = false
        place.storeBytes(of: JournalFormat.Kind.put, as: UInt8.self)
        place.storeBytes(of: UInt32(truncatingIfNeeded: key.count).bigEndian, toByteOffset: 1, as: UInt32.self)
        place.storeBytes(of: UInt32(truncatingIfNeeded: record.count).bigEndian, toByteOffset: 5, as: UInt32.self)
        copy(key, to: place + 9)
        copy(record, to: place + 9 + key.count)
    }

    /// Like ``put(key:record:sequence:)``, for a record in parts.
    func put(key: UnsafeRawBufferPointer, _ record: RecordView, sequence: UInt64) {
        let (headerCount, tail) = (record.header.fixedCount, record.tail)
        guard key.count <= JournalFormat.keyBytesMax, tail.count <= JournalFormat.recordBytesMax - headerCount else {
            return fail(EMSGSIZE)
        }
        guard note(sequence), let place = begin(key, record.header, headerCount, tail.count, room: tail.count) else {
            return
        }
        copy(tail, to: place)
    }

    /// Adds the operation that stores a record without tags whose payload is in a staged file. This must be the batch's
    /// only operation.
    func put(key: UnsafeRawBufferPointer, header: RecordHeader, staged: StagedFrame, sequence: UInt64) {
        let headerCount = header.fixedCount
        guard key.count <= JournalFormat.keyBytesMax, staged.byteCount <= JournalFormat.recordBytesMax - headerCount,
            payloadByteCount + 9 + key.count + headerCount == staged.bytesBefore
        else { return fail(EINVAL) }
        guard note(sequence), begin(key, header, headerCount, staged.byteCount, room: 0) != nil else { return }
        self.staged = staged
    }

    /// Adds the beginning of a put operation: everything except the record's tail.
    /// - Parameter room: the number of the tail's bytes for which to reserve memory; 0 for a staged payload.
    /// - Returns: the address for the tail; nil if there is not enough memory.
    @inline(__always)
    private func begin(
        _ key: UnsafeRawBufferPointer, _ header: RecordHeader, _ headerCount: Int, _ tailCount: Int, room: Int
    ) -> UnsafeMutableRawPointer? {
        let count = headerCount + tailCount
        guard let place = reserve(9 + key.count + headerCount + room) else { return nil }
        removesOnly = false
        place.storeBytes(of: JournalFormat.Kind.put, as: UInt8.self)
        place.storeBytes(of: UInt32(truncatingIfNeeded: key.count).bigEndian, toByteOffset: 1, as: UInt32.self)
        place.storeBytes(of: UInt32(truncatingIfNeeded: count).bigEndian, toByteOffset: 5, as: UInt32.self)
        copy(key, to: place + 9)
        header.write(to: place + 9 + key.count)
        return place + 9 + key.count + headerCount
    }

    /// Returns the number of bytes in a frame's payload before the payload of its first record.
    static func bytesBefore(database: String, keyCount: Int, headerCount: Int) -> Int {
        10 + database.utf8.count + 9 + keyCount + headerCount
    }

    /// Adds the operation that removes a key's record.
    func remove(key: UnsafeRawBufferPointer, sequence: UInt64) {
        guard key.count <= JournalFormat.keyBytesMax else { return fail(EMSGSIZE) }
        guard note(sequence), let place = reserve(5 + key.count) else { return }
        place.storeBytes(of: JournalFormat.Kind.remove, as: UInt8.self)
        place.storeBytes(of: UInt32(truncatingIfNeeded: key.count).bigEndian, toByteOffset: 1, as: UInt32.self)
        copy(key, to: place + 5)
    }

    /// Empties the batch. Frees its memory if it is larger than ``keptBytesMax``.
    func clear() {
        firstSequence = 0
        lastSequence = 0
        operationCount = 0
        defect = 0
        end = JournalFormat.frameHeaderBytes
        selectedNumber = nil
        staged = nil
        if !changes.isEmpty { changes.removeAll(keepingCapacity: changes.capacity <= Self.keptChangesMax) }
        committed = nil
        isPrepared = false
        removesOnly = true
        if capacity > Self.keptBytesMax {
            free(memory)
            memory = nil
            capacity = 0
        }
    }

    /// Completes the frame with a header for its place in the journal.
    /// - Returns: the bytes of the frame without a staged payload, valid until the batch changes. nil if the batch is
    ///   empty or defective.
    func seal(segment: UInt64, offset: Int, syncedSequence: UInt64) -> UnsafeRawBufferPointer? {
        guard operationCount > 0, defect == 0, let memory else { return nil }
        let frame = UnsafeMutableRawBufferPointer(start: memory, count: end)
        let header = JournalFrameHeader(
            payloadBytes: byteCount - JournalFormat.frameHeaderBytes, firstSequence: firstSequence,
            lastSequence: lastSequence, syncedSequence: syncedSequence)
        header.seal(frame, segment: segment, offset: offset, staged: staged)
        return UnsafeRawBufferPointer(frame)
    }

    // MARK: Memory

    private func fail(_ number: Int32) {
        if defect == 0 { defect = number }
    }

    @inline(__always) private func note(_ sequence: UInt64) -> Bool {
        guard selectedNumber != nil, staged == nil, sequence >= lastSequence, sequence > 0 else {
            fail(EINVAL)
            return false
        }
        if operationCount == 0 { firstSequence = sequence }
        lastSequence = sequence
        operationCount += 1
        return true
    }

    /// Appends `count` uninitialized bytes, all of which the caller must write, and returns their address.
    @inline(__always) private func reserve(_ count: Int) -> UnsafeMutableRawPointer? {
        if capacity - end < count, !grow(by: count) { return nil }
        guard let memory else { return nil }
        defer { end += count }
        return memory + end
    }

    @inline(never) private func grow(by count: Int) -> Bool {
        // `count` is below 2^30 and `end` below 2^33, so no sum here can overflow.
        let needed = end + count
        guard needed - JournalFormat.frameHeaderBytes <= JournalFormat.payloadBytesMax else {
            fail(EMSGSIZE)
            return false
        }
        let grown = max(needed, capacity * 2, Self.initialBytes)
        guard let moved = realloc(memory, grown) else {
            fail(ENOMEM)
            return false
        }
        memory = moved
        capacity = grown
        return true
    }

    @inline(__always) private func copy(_ bytes: UnsafeRawBufferPointer, to place: UnsafeMutableRawPointer) {
        if let start = bytes.baseAddress { memcpy(place, start, bytes.count) }
    }
}
