/// The journal's operations of a database whose POINTER cannot be read for now. Without POINTER, the current epoch
/// (LevelDB) and the valid operations are unknown. So the last operation for each key of each epoch is kept.
///
/// Not thread-safe: its database guards it.
struct UnresolvedOperations {
    struct Operation {
        /// nil for a removal.
        let record: [UInt8]?
        let sequence: UInt64
    }

    private(set) var epochs: [UInt64: [Key: Operation]] = [:]
    private(set) var byteCount = 0

    var isEmpty: Bool { epochs.isEmpty }

    mutating func add(
        _ epoch: UInt64, _ key: UnsafeRawBufferPointer, _ record: UnsafeRawBufferPointer?, _ sequence: UInt64
    ) {
        let operation = Operation(record: record.map { Array($0) }, sequence: sequence)
        let previous = epochs[epoch, default: [:]].updateValue(operation, forKey: Key(key))
        byteCount += (record?.count ?? 0) - (previous?.record?.count ?? 0)
        if previous == nil { byteCount += key.count + 16 }
    }
}
