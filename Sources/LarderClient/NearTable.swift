// The table of the near cache: which entries are here, and which leave when it is full.

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A decoded model, in memory that several tasks may read: models are Sendable.
final class NearBox<Value: Sendable>: Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}

/// Keys and what belongs to them, bounded in number and bytes. What was not asked for since the hand last came by leaves
/// first (CLOCK, as SIEVE places it: an entry does not move when it is read).
///
/// Single owner.
struct NearTable {
    struct Entry {
        fileprivate var hash: UInt
        fileprivate(set) var key: [UInt8]
        /// A ``NearBox`` of the type that `type` names.
        fileprivate(set) var box: AnyObject
        fileprivate(set) var type: ObjectIdentifier
        /// From when on it is not handed out, in monotonic milliseconds.
        fileprivate(set) var deadline: Int64
        fileprivate var bytes: Int
        fileprivate var wasAsked: Bool
        /// The next slot of the same bucket; -1 for none.
        fileprivate var next: Int32
    }

    private var slots: [Entry?] = []
    private var freeSlots: [Int32] = []
    private var buckets: [Int32]
    private var hand = 0
    private let entriesMax: Int
    private let bytesMax: Int
    private(set) var count = 0
    private(set) var bytes = 0
    private(set) var evictions = 0
    /// What every entry takes besides its key and its value, roughly.
    private static let overheadBytes = 160

    init(entriesMax: Int, bytesMax: Int) {
        self.entriesMax = max(1, min(entriesMax, 1 << 24))
        self.bytesMax = bytesMax
        var size = 16
        while size < self.entriesMax { size *= 2 }
        buckets = [Int32](repeating: -1, count: size)
    }

    /// FNV-1a over eight bytes at a time, mixed at the end: keys come from the program itself, and a bucket is searched by
    /// comparing keys.
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

    /// The slot of a key; -1 if it is not here.
    private func slot(_ key: UnsafeRawBufferPointer, _ hash: UInt) -> Int32 {
        var index = buckets[bucket(hash)]
        while index >= 0, let entry = slots[Int(index)] {
            if entry.hash == hash, entry.key.withUnsafeBytes({ Self.isEqual($0, key) }) { return index }
            index = entry.next
        }
        return -1
    }

    private static func isEqual(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
        guard one.count == other.count else { return false }
        guard let left = one.baseAddress, let right = other.baseAddress else { return true }
        return memcmp(left, right, one.count) == 0
    }

    /// The box of a key, if one of that type is here; marks it as asked for.
    mutating func find(_ key: UnsafeRawBufferPointer, _ type: ObjectIdentifier, now: () -> Int64) -> AnyObject? {
        let index = Int(slot(key, Self.hash(key)))
        guard index >= 0, let entry = slots[index], entry.type == type else { return nil }
        if entry.deadline != .max, now() >= entry.deadline {
            remove(key)
            return nil
        }
        if !entry.wasAsked { slots[index]?.wasAsked = true }
        return entry.box
    }

    mutating func insert(
        _ key: [UInt8], _ box: AnyObject, _ type: ObjectIdentifier, deadline: Int64, valueBytes: Int
    ) {
        _ = key.withUnsafeBytes { remove($0) }
        let size = key.count + valueBytes + Self.overheadBytes
        guard size <= bytesMax else { return }
        while count >= entriesMax || bytes + size > bytesMax { evictOne() }
        let hash = key.withUnsafeBytes { Self.hash($0) }
        let entry = Entry(
            hash: hash, key: key, box: box, type: type, deadline: deadline, bytes: size, wasAsked: false,
            next: buckets[bucket(hash)])
        let index: Int32
        if let free = freeSlots.popLast() {
            index = free
            slots[Int(free)] = entry
        } else {
            index = Int32(slots.count)
            slots.append(entry)
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
        slots.removeAll()
        freeSlots.removeAll()
        for index in buckets.indices { buckets[index] = -1 }
        hand = 0
        count = 0
        bytes = 0
    }

    private mutating func unlink(_ index: Int32) {
        guard let entry = slots[Int(index)] else { return }
        let bucket = bucket(entry.hash)
        if buckets[bucket] == index {
            buckets[bucket] = entry.next
        } else {
            var before = buckets[bucket]
            while before >= 0, let other = slots[Int(before)] {
                if other.next == index {
                    slots[Int(before)]?.next = entry.next
                    break
                }
                before = other.next
            }
        }
        slots[Int(index)] = nil
        freeSlots.append(index)
        count -= 1
        bytes -= entry.bytes
    }

    private mutating func evictOne() {
        guard count > 0 else { return }
        while true {
            if hand >= slots.count { hand = 0 }
            if let entry = slots[hand] {
                if !entry.wasAsked {
                    unlink(Int32(hand))
                    evictions += 1
                    return
                }
                slots[hand]?.wasAsked = false
            }
            hand += 1
        }
    }
}
