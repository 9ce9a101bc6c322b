// The hash table of the near cache, with its eviction.

import LarderPlatform

/// A decoded model in memory that several tasks may read, because models are Sendable.
final class NearBox<Value: Sendable>: Sendable {
    let value: Value
    /// Keeps the codec alive, so that no other codec can get the same identity. `nonisolated(unsafe)` is safe here,
    /// because the object is never accessed.
    private nonisolated(unsafe) let codecIdentity: AnyObject?

    init(_ value: Value, _ codec: ModelCodec?) {
        self.value = value
        codecIdentity = codec?.identity
    }
}

/// The kind of a decoded model: its type, and its codec if the codec has an identity of its own. A value type.
struct NearIdentity: Hashable, Sendable {
    private let type: ObjectIdentifier
    private let codec: ObjectIdentifier?

    init<Value>(_ type: Value.Type, _ codec: ModelCodec) {
        self.type = ObjectIdentifier(type)
        self.codec = codec.identity.map { ObjectIdentifier($0) }
    }

    private init(absence: Any.Type) {
        type = ObjectIdentifier(absence)
        codec = nil
    }

    /// The placeholder for a key that is known to have no entry, and its identity.
    static let absenceBox = NearBox((), nil)
    static let absence = NearIdentity(absence: Never.self)
}

/// A hash table of keys and entries, limited in number and bytes. It evicts with the SIEVE algorithm: a hand moves over
/// the slots, and evicts the first entry that was not read since the hand's last pass.
///
/// Not thread-safe: guarded by the lock of ``NearCache``.
struct NearTable {
    /// The part of a slot that each lookup reads. It has no references to objects, so that a hit retains only one key
    /// and its box.
    private struct Head {
        var hash: UInt
        var type: NearIdentity
        /// When the entry expires, in monotonic milliseconds.
        var deadline: Int64
        var bytes: Int
        /// The next slot of the same bucket; -1 for none.
        var next: Int32
        var wasAsked: Bool
        var isUsed = true
    }

    private var heads: [Head] = []
    /// The key of each slot; empty for a free slot.
    private var keys: [[UInt8]] = []
    /// The ``NearBox`` of each slot; nil for a free slot. The type of its value is `type` in the slot's ``Head``.
    private var boxes: [AnyObject?] = []
    private var freeSlots: [Int32] = []
    private var buckets: [Int32]
    private var hand = 0
    private let entriesMax: Int
    private let bytesMax: Int
    private(set) var count = 0
    private(set) var bytes = 0
    private(set) var evictions = 0
    /// The approximate memory of an entry without its key and its value, in bytes.
    private static let overheadBytes = 160

    init(entriesMax: Int, bytesMax: Int) {
        self.entriesMax = max(1, min(entriesMax, 1 << 24))
        self.bytesMax = bytesMax
        var size = 16
        while size < self.entriesMax { size *= 2 }
        buckets = [Int32](repeating: -1, count: size)
    }

    /// Hashes a key like FNV-1a, but eight bytes at a time, and then mixes the bits. The hash need not resist attacks,
    /// because the keys come from the program itself.
    static func hash(_ key: UnsafeRawBufferPointer) -> UInt {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325 ^ UInt64(truncatingIfNeeded: key.count)
        var index = 0
        while index + 8 <= key.count {
            hash = (hash ^ key.loadUnaligned(fromByteOffset: index, as: UInt64.self)) &* 0x9e37_79b9_7f4a_7c15
            hash ^= hash >> 32
            index += 8
        }
        while index < key.count {
            hash = (hash ^ UInt64(key[index])) &* 0x0100_0000_01b3
            index += 1
        }
        hash = (hash ^ (hash >> 29)) &* 0xbf58_476d_1ce4_e5b9
        return UInt(truncatingIfNeeded: hash ^ (hash >> 32))
    }

    private func bucket(_ hash: UInt) -> Int { Int(hash & UInt(buckets.count - 1)) }

    /// Returns the slot of a key; -1 if there is none.
    private func slot(_ key: UnsafeRawBufferPointer, _ hash: UInt) -> Int32 {
        var index = buckets[bucket(hash)]
        while index >= 0 {
            let slot = Int(index)
            if heads[slot].hash == hash, keys[slot].withUnsafeBytes({ Self.isEqual($0, key) }) { return index }
            index = heads[slot].next
        }
        return -1
    }

    private static func isEqual(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
        guard one.count == other.count else { return false }
        guard let left = one.baseAddress, let right = other.baseAddress else { return true }
        return memcmp(left, right, one.count) == 0
    }

    /// Returns the box of a key's entry, and marks the entry as used. Returns ``NearIdentity/absenceBox`` if the key is
    /// known to have no entry; nil if there is no box of this type.
    mutating func find(_ key: UnsafeRawBufferPointer, _ type: NearIdentity, now: () -> Int64) -> AnyObject? {
        let index = Int(slot(key, Self.hash(key)))
        guard index >= 0, heads[index].type == type || heads[index].type == NearIdentity.absence else { return nil }
        if heads[index].deadline != .max, now() >= heads[index].deadline {
            unlink(Int32(index))
            return nil
        }
        heads[index].wasAsked = true
        return boxes[index]
    }

    mutating func insert(_ key: [UInt8], _ box: AnyObject, _ type: NearIdentity, deadline: Int64, valueBytes: Int) {
        _ = key.withUnsafeBytes { remove($0) }
        let size = key.count + valueBytes + Self.overheadBytes
        guard size <= bytesMax else { return }
        while count >= entriesMax || bytes + size > bytesMax { evictOne() }
        let hash = key.withUnsafeBytes { Self.hash($0) }
        let head = Head(
            hash: hash, type: type, deadline: deadline, bytes: size, next: buckets[bucket(hash)], wasAsked: false)
        let index: Int32
        if let free = freeSlots.popLast() {
            index = free
            heads[Int(free)] = head
            keys[Int(free)] = key
            boxes[Int(free)] = box
        } else {
            index = Int32(heads.count)
            heads.append(head)
            keys.append(key)
            boxes.append(box)
        }
        buckets[bucket(hash)] = index
        count += 1
        bytes += size
    }

    @discardableResult
    mutating func remove(_ key: UnsafeRawBufferPointer) -> Bool {
        let index = slot(key, Self.hash(key))
        guard index >= 0 else { return false }
        unlink(index)
        return true
    }

    mutating func removeAll() {
        heads.removeAll()
        keys.removeAll()
        boxes.removeAll()
        freeSlots.removeAll()
        for index in buckets.indices { buckets[index] = -1 }
        hand = 0
        count = 0
        bytes = 0
    }

    private mutating func unlink(_ index: Int32) {
        let entry = heads[Int(index)]
        guard entry.isUsed else { return }
        let bucket = bucket(entry.hash)
        if buckets[bucket] == index {
            buckets[bucket] = entry.next
        } else {
            var before = buckets[bucket]
            while before >= 0, heads[Int(before)].next != index { before = heads[Int(before)].next }
            if before >= 0 { heads[Int(before)].next = entry.next }
        }
        heads[Int(index)].isUsed = false
        keys[Int(index)] = []
        boxes[Int(index)] = nil
        freeSlots.append(index)
        count -= 1
        bytes -= entry.bytes
    }

    private mutating func evictOne() {
        guard count > 0 else { return }
        while true {
            if hand >= heads.count { hand = 0 }
            if heads[hand].isUsed {
                if !heads[hand].wasAsked {
                    unlink(Int32(hand))
                    evictions += 1
                    return
                }
                heads[hand].wasAsked = false
            }
            hand += 1
        }
    }
}
