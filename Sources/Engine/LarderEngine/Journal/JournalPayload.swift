/// Iterates over the operations in a frame's payload. Never reads beyond its end, even if the bytes are damaged.
struct JournalPayload {
    enum Step {
        case database(name: UnsafeRawBufferPointer, epoch: UInt64)
        case put(key: UnsafeRawBufferPointer, record: UnsafeRawBufferPointer)
        case remove(key: UnsafeRawBufferPointer)
        case end
        case malformed
    }

    private let bytes: UnsafeRawBufferPointer
    private var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    mutating func next() -> Step {
        guard offset < bytes.count else { return .end }
        let kind = bytes[offset]
        offset += 1
        switch kind {
        case JournalFormat.Kind.database:
            guard let length = integer(1), length > 0, let epoch = integer(8), let name = take(length) else {
                return .malformed
            }
            return .database(name: name, epoch: epoch)
        case JournalFormat.Kind.put:
            guard let keyLength = integer(4), let recordLength = integer(4),
                keyLength <= UInt64(JournalFormat.keyBytesMax), recordLength <= UInt64(JournalFormat.recordBytesMax),
                let key = take(keyLength), let record = take(recordLength)
            else { return .malformed }
            return .put(key: key, record: record)
        case JournalFormat.Kind.remove:
            guard let length = integer(4), length <= UInt64(JournalFormat.keyBytesMax), let key = take(length) else {
                return .malformed
            }
            return .remove(key: key)
        default: return .malformed
        }
    }

    private mutating func integer(_ count: Int) -> UInt64? {
        guard let value = BigEndian.read(bytes, at: offset, count: count) else { return nil }
        offset += count
        return value
    }

    private mutating func take(_ count: UInt64) -> UnsafeRawBufferPointer? {
        guard count <= UInt64(bytes.count - offset) else { return nil }
        defer { offset += Int(count) }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + Int(count))])
    }

    /// Returns whether a payload has operations of a database.
    static func concerns(_ name: String, _ bytes: UnsafeRawBufferPointer) -> Bool {
        var payload = JournalPayload(bytes)
        while true {
            switch payload.next() {
            case .database(let found, _): if String(decoding: found, as: UTF8.self) == name { return true }
            case .put, .remove: break
            case .end, .malformed: return false
            }
        }
    }

    /// Counts the puts and removals in a payload.
    /// - Returns: nil if the payload is malformed. Then none of its operations is valid.
    static func operationCount(_ bytes: UnsafeRawBufferPointer) -> Int? {
        var payload = JournalPayload(bytes)
        var count = 0
        var hasDatabase = false
        while true {
            switch payload.next() {
            case .database(let name, _):
                guard String(validating: name, as: UTF8.self) != nil else { return nil }
                hasDatabase = true
            case .put, .remove:
                guard hasDatabase else { return nil }
                count += 1
            case .end: return count
            case .malformed: return nil
            }
        }
    }
}
