extension LargeValue {
    /// Writes a long value to the disk before the update that stores it. If the journal has no space for the value,
    /// first waits until a checkpoint has written earlier changes to LevelDB. Does not delay writers of other values.
    /// - Parameters:
    ///   - rule: of the same kind as in the update: the kind and `grace` determine the length of the header.
    ///   - durability: the same as in the update that stores the value.
    /// - Throws: `commitFailed` if the value cannot be written to the disk. Nothing has changed then.
    package convenience init(
        staging payload: UnsafeRawBufferPointer, _ key: Key, in database: Database, rule: DeadlineRule,
        grace: Int64? = nil, durability: Durability? = nil
    ) throws(LarderError) {
        try ForkGuard.check("update")
        try database.checkFits(payload.count, limit: database.diskLimit)
        _ = database.waitForRoom(for: .long)
        if let refusal = database.pipeline.refusal("update") { throw refusal }
        let header = RecordHeader(storedAt: 0, rule: database.rules.stored(rule, now: 0), grace: grace)
        let bytesBefore = JournalBatch.bytesBefore(
            database: database.name, keyCount: key.bytes.count, headerCount: header.byteCount)
        let staged = try database.pipeline.stage(
            payload, bytesBefore: bytesBefore,
            isSynced: (durability ?? database.context.options.durability) == .always)
        self.init(key, headerCount: header.byteCount, payload, staged)
    }
}

extension Database {
    /// The payload size in bytes from which staging a value is faster than storing it with an ordinary update: 4 MiB.
    package static let largeValueBytesMin = 4 << 20

    /// Waits for a checkpoint if too many bytes wait to be written to LevelDB. The checkpoint can free their memory and
    /// their space in the journal. Call it before building a long value in memory. May block.
    /// - Returns: whether it waited.
    package func waitForRoom(for write: PendingWrite) -> Bool {
        guard checkpointer.isFull(for: write) else { return false }
        pipeline.drain()
        // A checkpoint that begins now includes every earlier long value. The caller checks the outcome.
        _ = checkpointer.assist(for: write)
        return true
    }
}
