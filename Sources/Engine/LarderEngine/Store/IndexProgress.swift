import LarderLevelDB

/// How far an index is built. A metadata record in LevelDB, so that it always agrees with the hints there: a new epoch
/// has none, and its indexes are built anew. **On disk: do not change.**
enum IndexProgress: Equatable {
    /// Every record has its hints.
    case ready
    /// Every record before `position`, a key as LevelDB stores it, has its hints. `records` is their number.
    case building(records: UInt64, position: [UInt8])

    static let nothing = IndexProgress.building(records: 0, position: [KeyKind.record])

    /// The beginning of the keys of all indexes.
    static let prefix: [UInt8] = [KeyKind.metadata] + Array("index".utf8)

    /// The key of the record: `index`, and the number of the index (8 bytes, big-endian).
    static func key(_ number: UInt64) -> [UInt8] {
        var key = prefix
        BigEndian.append(number, to: &key)
        return key
    }

    /// Returns the number of the index in a key; nil for other keys.
    static func number(_ key: UnsafeRawBufferPointer) -> UInt64? {
        guard key.count == prefix.count + 8, key.starts(with: prefix) else { return nil }
        return BigEndian.read(key, at: prefix.count)
    }

    /// `01`: ready. `00`: being built; then the number of records (8 bytes, big-endian) and the position.
    var value: [UInt8] {
        switch self {
        case .ready: return [1]
        case .building(let records, let position):
            var value: [UInt8] = [0]
            BigEndian.append(records, to: &value)
            return value + position
        }
    }

    /// Parses a value. If it is malformed, the index is built from the beginning.
    init(parsing value: UnsafeRawBufferPointer) {
        if value.count == 1, value[0] == 1 {
            self = .ready
        } else if value.count > 9, value[0] == 0, value[9] == KeyKind.record, let records = BigEndian.read(value, at: 1)
        {
            self = .building(records: records, position: Array(value[9...]))
        } else {
            self = .nothing
        }
    }
}

extension EpochStore {
    /// Returns how far an index is built in this store.
    func indexProgress(_ number: UInt64) throws(LarderError) -> IndexProgress {
        guard isMade else { return .ready }
        let value = try access("index") { (database) throws(LevelDBError) in
            try database.get(IndexProgress.key(number))
        }
        return value?.withUnsafeBytes { IndexProgress(parsing: $0) } ?? .nothing
    }

    /// Calls `body` with the key and the value of each hint of an index. Between a few thousand of them, the store can
    /// be closed or reopened.
    func forEachHint(
        _ number: UInt64, _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Void
    ) throws(LarderError) {
        var start = isMade ? Hint.head(number) : nil
        while let from = start { start = try readHints(number, from: from, most: 4096, body) }
    }

    /// Calls `body` with the key and the value of the next hints of an index.
    /// - Returns: the key of the hint after them; nil if there is none.
    func readHints(
        _ number: UInt64, from start: [UInt8], most: Int,
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Void
    ) throws(LarderError) -> [UInt8]? {
        try access("index") { (database) throws(LevelDBError) in
            var (left, next) = (most, [UInt8]?.none)
            try database.scan(Hint.head(number), from: start) { (cursor) throws(LevelDBError) in
                // Copy the key: a nested call could wait for the end of a merge that waits for this one.
                let key = cursor.key
                guard left > 0 else {
                    next = key
                    return false
                }
                left -= 1
                try cursor.withValue { value in key.withUnsafeBytes { body($0, value) } }
                return true
            }
            return next
        }
    }
}
