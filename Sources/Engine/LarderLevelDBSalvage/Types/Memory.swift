import LarderPlatform

/// Allocated memory that is freed with its object. Its size may come from a damaged file and be huge. A failed
/// allocation throws here; a Swift array would terminate the process.
final class Memory {
    private(set) var start: UnsafeMutableRawPointer
    private(set) var count: Int
    private var capacity: Int

    /// Allocates `count` uninitialized bytes.
    init(count: Int, path: String) throws(SalvageError) {
        guard let start = malloc(max(count, 1)) else { throw Self.exhausted(path) }
        self.start = start
        self.count = count
        capacity = max(count, 1)
    }

    deinit { free(start) }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

    /// Appends bytes. Pointers that ``bytes`` has returned before are invalid afterwards.
    func append(_ bytes: UnsafeRawBufferPointer, path: String) throws(SalvageError) {
        guard let source = bytes.baseAddress else { return }
        if bytes.count > capacity - count { try grow(to: count + bytes.count, path) }
        (start + count).copyMemory(from: source, byteCount: bytes.count)
        count += bytes.count
    }

    func append(_ bytes: [UInt8], path: String) throws(SalvageError) {
        // The error is passed in a Result, because withUnsafeBytes does not support typed errors.
        let outcome = bytes.withUnsafeBytes { bytes in
            Result { () throws(SalvageError) in try append(bytes, path: path) }
        }
        try outcome.get()
    }

    /// Flips the bits in `mask` of the byte at `offset`. Does nothing if there is no such byte.
    func flip(_ mask: UInt8, at offset: Int) {
        guard offset >= 0, offset < count else { return }
        start.storeBytes(of: bytes[offset] ^ mask, toByteOffset: offset, as: UInt8.self)
    }

    /// Drops all bytes after the first `count`, but does not free their memory.
    func truncate(to count: Int) { self.count = min(self.count, count) }

    /// Frees the unused memory.
    func trim() {
        guard capacity > count, let smaller = realloc(start, max(count, 1)) else { return }
        start = smaller
        capacity = max(count, 1)
    }

    private func grow(to needed: Int, _ path: String) throws(SalvageError) {
        let wanted = max(needed, capacity + capacity / 2)
        guard let larger = realloc(start, wanted) else { throw Self.exhausted(path) }
        start = larger
        capacity = wanted
    }

    private static func exhausted(_ path: String) -> SalvageError {
        SalvageError(systemCall: "malloc", path: path, errno: ENOMEM)
    }
}
