import LarderPlatform

/// A hash table that contains the references of a table's entries: 8 bytes for each, at a load of 0.78 to 0.875.
///
/// A slot contains a *tag* (32 bits of the hash of the entry's key) and the reference. The slots are sorted by tags:
/// the higher a tag, the higher is its *home*, where a lookup begins, and an entry whose home is taken is in one of
/// the next slots, in order. (This is linear probing with ordered slots, as in Robin Hood hashing.) So the table can be
/// copied to an array of any size in one sequential pass without reading the entries, and it grows by an eighth.
///
/// It grows without a pause: each change copies some of the slots to the new array, in the order of the tags. Until all
/// are copied, the slots of the tags less than `boundary` are in the new array, and the others in the old one.
///
/// Unsafe: the last slot of each array always stays empty, so a lookup ends there at the latest.
struct SlotTable {
    typealias Slot = UnsafeMutablePointer<UInt64>

    private struct Slots {
        let words: UnsafeMutablePointer<UInt64>
        /// The number of homes.
        let capacity: Int
        /// The number of slots, which is greater than `capacity`.
        let count: Int

        /// The slots of an empty table: only the last one, which is never written.
        nonisolated(unsafe) static let none = Slots(
            words: {
                let words = UnsafeMutablePointer<UInt64>.allocate(capacity: 1)
                words.initialize(to: 0)
                return words
            }(), capacity: 0, count: 1)

        var byteCount: Int { capacity == 0 ? 0 : count * 8 }
        private static let mappedBytesMin = 65_536
        /// Up to this size, the system provides the memory at once. More would take too long.
        private static let residentBytesMax = 1 << 20

        /// - Parameter spare: the number of slots after the home of the highest tag.
        static func make(capacity: Int, spare: Int) -> Slots {
            let count = capacity + spare
            if count * 8 >= mappedBytesMin {
                let memory = PageMemory.map(count * 8, isResident: count * 8 <= residentBytesMax)
                return Slots(
                    words: memory.bindMemory(to: UInt64.self, capacity: count), capacity: capacity, count: count)
            }
            let words = UnsafeMutablePointer<UInt64>.allocate(capacity: count)
            words.initialize(repeating: 0, count: count)
            return Slots(words: words, capacity: capacity, count: count)
        }

        func deallocate() {
            if capacity == 0 { return }
            if count * 8 >= Self.mappedBytesMin { PageMemory.unmap(words, count * 8) } else { words.deallocate() }
        }

        /// The first slot that may contain a tag.
        @inline(__always)
        func home(_ tag: UInt32) -> Slot { words + Int((UInt64(tag) &* UInt64(capacity)) >> 32) }

        var end: Slot { words + count }
    }

    private var current = Slots.none
    /// The array to which the slots are being copied. Meaningless if `boundary` is 0 and `isGrowing` is false.
    private var next = Slots.none
    private var isGrowing = false
    /// The slots with tags less than this are in `next`.
    private var boundary: UInt64 = 0
    /// While the slots are copied: the index in `current` after the last slot that was copied.
    private var copied = 0
    private(set) var count = 0
    /// Whether the array doubles when it is full, instead of growing by an eighth. Then slots are copied twice on
    /// average, instead of nine times, but up to half of them are empty: call ``fit()`` at the end.
    var isFilling = false

    private static let copiedAtOnce = 128
    private static let spare = 64

    var byteCount: Int { current.byteCount + (isGrowing ? next.byteCount : 0) }
    /// The start and the number of homes of the array that contains most slots, for prefetching.
    var homes: (start: UnsafeMutablePointer<UInt64>, capacity: Int) { (current.words, current.capacity) }

    /// The tag of a hash: 32 bits above those that select the shard. Never 0, so that a slot in use is not 0.
    @inline(__always)
    static func tag(_ hash: Int) -> UInt32 { UInt32(truncatingIfNeeded: hash >> 4) | 1 }

    static func tag(_ word: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: word >> 32) }
    static func reference(_ word: UInt64) -> EntryReference { EntryReference(truncatingIfNeeded: word) }
    static func word(_ tag: UInt32, _ reference: EntryReference) -> UInt64 { UInt64(tag) << 32 | UInt64(reference) }

    /// Returns the slot with a tag for whose reference `matches` returns true; nil if there is none.
    @inline(__always)
    func find(_ tag: UInt32, _ matches: (EntryReference) -> Bool) -> Slot? {
        var slot = UInt64(tag) < boundary ? next.home(tag) : current.home(tag)
        let low = UInt64(tag) << 32
        while true {
            let word = slot.pointee
            if word < low {
                if word == 0 { return nil }
            } else {
                if Self.tag(word) != tag { return nil }
                if matches(Self.reference(word)) { return slot }
            }
            slot += 1
        }
    }

    /// Calls `body` with each tag and reference, in the order of the tags.
    func forEach(_ body: (UInt32, EntryReference) -> Void) {
        if isGrowing {
            for index in 0..<next.count where next.words[index] != 0 {
                body(Self.tag(next.words[index]), Self.reference(next.words[index]))
            }
        }
        for index in copied..<current.count where current.words[index] != 0 {
            body(Self.tag(current.words[index]), Self.reference(current.words[index]))
        }
    }

    // MARK: Changes

    mutating func insert(_ tag: UInt32, _ reference: EntryReference) {
        if !isGrowing, 8 * (count + 1) > 7 * current.capacity {
            begin(capacity: current.capacity + (isFilling ? current.capacity : current.capacity / 8) + 8)
        }
        copySome()
        count += 1
        let word = Self.word(tag, reference)
        if UInt64(tag) < boundary {
            while !Self.place(word, in: next) { next = Self.extended(next) }
        } else {
            while !Self.place(word, in: current) { current = Self.extended(current) }
        }
    }

    /// Empties a slot that ``find(_:_:)`` has returned. Pointers to slots become invalid.
    mutating func remove(_ slot: Slot) {
        let slots = isGrowing && slot >= next.words && slot < next.end ? next : current
        var hole = slot
        // Move the following slots back, except those at or before their home.
        while (hole + 1).pointee != 0, slots.home(Self.tag((hole + 1).pointee)) <= hole {
            hole.pointee = (hole + 1).pointee
            hole += 1
        }
        hole.pointee = 0
        count -= 1
        if count == 0 { return removeAll() }
        if !isGrowing, current.capacity > 64, 2 * count < current.capacity { begin(capacity: count + count / 4 + 8) }
        copySome()
    }

    /// Copies the slots to an array that suits their number, if too many are empty. Takes time for all slots.
    mutating func fit() {
        while isGrowing { copySome() }
        guard current.capacity > 64, 4 * current.capacity > 5 * count + 64 else { return }
        begin(capacity: count + count / 4 + 8)
        while isGrowing { copySome() }
    }

    mutating func removeAll() {
        if isGrowing { next.deallocate() }
        current.deallocate()
        self = SlotTable()
    }

    /// Stores a word in order.
    /// - Returns: false if there is no space at the end.
    private static func place(_ word: UInt64, in slots: Slots) -> Bool {
        if slots.capacity == 0 { return false }
        var slot = slots.home(tag(word))
        while slot.pointee != 0, slot.pointee < word { slot += 1 }
        var end = slot
        while end.pointee != 0 { end += 1 }
        // The last slot must stay empty.
        guard end < slots.end - 1 else { return false }
        (slot + 1).update(from: slot, count: end - slot)
        slot.pointee = word
        return true
    }

    /// Returns the same slots with more space at the end, and frees the old array. Rarely needed: only if more than 63
    /// entries with the highest tags are displaced.
    private static func extended(_ slots: Slots) -> Slots {
        let longer = Slots.make(capacity: slots.capacity, spare: 2 * (slots.count - slots.capacity))
        longer.words.update(from: slots.words, count: slots.count)
        slots.deallocate()
        return longer
    }

    // MARK: Growing

    private mutating func begin(capacity: Int) {
        next = Slots.make(capacity: capacity, spare: min(Self.spare, 8 + capacity / 4))
        isGrowing = true
        copied = 0
    }

    /// Copies some slots to the new array, if there is one.
    private mutating func copySome() {
        guard isGrowing else { return }
        let (words, end) = (current.words, current.count)
        var (index, left, last) = (copied, Self.copiedAtOnce, Slot?.none)
        while index < end {
            let word = words[index]
            if word != 0 {
                // Equal tags stay together, because the boundary is a tag.
                if left <= 0, UInt64(Self.tag(word)) >= boundary { break }
                last = append(word, after: last)
                boundary = UInt64(Self.tag(word)) + 1
                // Not after the empty slots that follow: a word may be inserted there before the next call.
                copied = index + 1
                left -= 1
            }
            index += 1
        }
        if index < end { return }
        current.deallocate()
        (current, isGrowing, boundary, copied) = (next, false, 0, 0)
    }

    /// Adds a word whose tag is not less than any tag in the new array.
    /// - Parameter last: the slot of the last such word, if nothing was changed since; nil to search from the home.
    @inline(__always)
    private mutating func append(_ word: UInt64, after last: Slot?) -> Slot {
        var slot = next.home(Self.tag(word))
        if let last, slot <= last { slot = last + 1 }
        while slot.pointee != 0 { slot += 1 }
        if slot >= next.end - 1 {
            let index = slot - next.words
            next = Self.extended(next)
            slot = next.words + index
        }
        slot.pointee = word
        return slot
    }
}
