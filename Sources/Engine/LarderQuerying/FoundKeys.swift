import LarderPlatform

/// The keys of the entries that a query has found, because it may find an entry twice.
struct FoundKeys {
    private struct Item {
        let hash: Int
        let start: Int
        let count: Int
    }

    private var bytes: [UInt8] = []
    private var items: [Item] = []
    /// An open hash table: numbers of `items` plus 1, 0 for a free slot. Its size is a power of 2.
    private var slots = [UInt32](repeating: 0, count: 64)

    /// The memory of the keys, in bytes.
    var byteCount: Int { bytes.count + items.count * 32 + slots.count * 4 }

    mutating func removeAll() { self = FoundKeys() }

    /// - Parameter hash: as in ``Key/hash(_:)``.
    func contains(_ key: UnsafeRawBufferPointer, hash: Int) -> Bool { slots[slot(of: key, hash)] != 0 }

    /// Adds a key, which must not be contained.
    mutating func insert(_ key: UnsafeRawBufferPointer, hash: Int) {
        if items.isEmpty {
            bytes.reserveCapacity(512)
            items.reserveCapacity(32)
        }
        if 2 * items.count >= slots.count {
            slots = [UInt32](repeating: 0, count: 2 * slots.count)
            for (index, item) in items.enumerated() { slots[freeSlot(item.hash)] = UInt32(index + 1) }
        }
        items.append(Item(hash: hash, start: bytes.count, count: key.count))
        bytes.append(contentsOf: key)
        slots[freeSlot(hash)] = UInt32(items.count)
    }

    private func freeSlot(_ hash: Int) -> Int {
        var slot = hash >> 16 & (slots.count - 1)
        while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
        return slot
    }

    /// The slot of a key, or the free one in which it would be.
    private func slot(of key: UnsafeRawBufferPointer, _ hash: Int) -> Int {
        var slot = hash >> 16 & (slots.count - 1)
        while slots[slot] != 0 {
            let item = items[Int(slots[slot]) - 1]
            if item.hash == hash, isEqual(item, key) { return slot }
            slot = (slot + 1) & (slots.count - 1)
        }
        return slot
    }

    private func isEqual(_ item: Item, _ key: UnsafeRawBufferPointer) -> Bool {
        guard item.count == key.count else { return false }
        return bytes.withUnsafeBytes {
            ByteOrder.compare(UnsafeRawBufferPointer(rebasing: $0[item.start..<(item.start + item.count)]), key) == 0
        }
    }
}
