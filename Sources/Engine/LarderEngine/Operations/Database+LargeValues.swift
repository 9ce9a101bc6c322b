extension Database {
    /// The payload size in bytes from which staging a value is faster than storing it with an ordinary update: 4 MiB.
    package static let largeValueBytesMin = 4 << 20

    /// Writes a long value to the disk before the update that stores it. If the journal has no space for the value,
    /// first waits until a checkpoint has written earlier changes to LevelDB. Does not delay writers of other values.
    /// - Parameters:
    ///   - rule: of the same kind as in the update: it determines, together with `grace`, the length of the header.
    ///   - durability: the same as in the update that stores the value.
    /// - Throws: `commitFailed` if the value cannot be written to the disk. Nothing has changed then.
    package func stage(
        _ payload: UnsafeRawBufferPointer, _ key: Key, rule: DeadlineRule, grace: Int64? = nil,
        durability: Durability? = nil
    ) throws(LarderError) -> LargeValue {
        try ForkGuard.check("update")
        try checkFits(payload.count, limit: diskLimit)
        waitForRoomForLong()
        if let refusal = pipeline.refusal("update") { throw refusal }
        let headerCount = RecordHeader(storedAt: 0, rule: rules.stored(rule, now: 0), grace: grace).byteCount
        let staged = try pipeline.stage(
            payload,
            bytesBefore: JournalBatch.bytesBefore(
                database: name, keyCount: key.bytes.count, headerCount: headerCount),
            isSynced: (durability ?? context.options.durability) == .always)
        return LargeValue(key, headerCount: headerCount, payload, staged)
    }

    /// If too many bytes in memory wait to be written to LevelDB, waits for a checkpoint, so that their memory can be
    /// freed. Call it before building a long value in memory. May block.
    /// - Returns: whether it waited.
    package func waitForRoomToBuild() -> Bool {
        guard checkpointer.isFullForBuilding else { return false }
        pipeline.drain()
        _ = checkpointer.assistForBuilding()
        return true
    }

    /// Waits for a checkpoint if the journal has no space for another long value. May block.
    private func waitForRoomForLong() {
        guard checkpointer.isFullForLong else { return }
        pipeline.drain()
        // A checkpoint that begins now includes every earlier long value. The caller checks whether it failed.
        _ = checkpointer.assistForLong()
    }
}
