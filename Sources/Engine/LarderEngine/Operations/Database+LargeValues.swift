extension Database {
    /// The size in bytes from which ``stage(_:_:rule:grace:durability:)`` is faster: 4 MiB.
    package static let largeValueBytesMin = 4 << 20

    /// Writes a long value to the disk before the update that stores it. First waits until LevelDB has the long values
    /// stored before. Writers of other values are not delayed.
    /// - Parameters:
    ///   - rule: of the same kind as the record's, which has a grace if `grace` is not nil.
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

    /// Waits until LevelDB has the long values stored before, so that their memory can be freed. Call it before
    /// building another long value. May block.
    /// - Returns: whether there were any such values.
    package func waitForRoomToBuild() -> Bool {
        guard checkpointer.isFullForBuilding else { return false }
        pipeline.drain()
        _ = checkpointer.assistForBuilding()
        return true
    }

    /// Waits until the journal has space for another long value. May block.
    private func waitForRoomForLong() {
        guard checkpointer.isFullForLong else { return }
        pipeline.drain()
        // An assist that begins now includes every earlier long value. The next step detects a failure.
        _ = checkpointer.assistForLong()
    }
}
