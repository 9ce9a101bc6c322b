extension Database {
    /// From how many bytes on a value is worth ``stage(_:_:rule:)``: 4 MiB.
    package static let largeValueBytesMin = 4 << 20

    /// Prepares a long value for an update that stores it under a key. Takes as long as the disk needs for it, and first waits
    /// until LevelDB has what was stored of this kind before; writers of other values do not wait meanwhile.
    /// - Parameters:
    ///   - rule: of the same kind as that of the record.
    ///   - durability: as for the update that stores the value.
    /// - Throws: `commitFailed` when the disk does not take it. Nothing has changed then.
    package func stage(
        _ payload: UnsafeRawBufferPointer, _ key: Key, rule: DeadlineRule, durability: Durability? = nil
    ) throws(LarderError) -> LargeValue {
        try ForkGuard.check("update")
        waitForRoomForLong()
        if let refusal = pipeline.refusal("update") { throw refusal }
        let headerCount = RecordHeader(storedAt: 0, rule: rule, codec: .raw, generation: 0).byteCount
        let staged = try pipeline.stage(
            payload,
            bytesBefore: JournalBatch.bytesBefore(
                database: name, keyCount: key.bytes.count, headerCount: headerCount),
            isSynced: (durability ?? context.options.durability) == .always)
        return LargeValue(key, headerCount: headerCount, payload, staged)
    }

    /// Waits until LevelDB has the long values that were stored before, so that their memory can go. To be called before one
    /// is built. May block.
    /// - Returns: whether there were any.
    package func waitForRoomToBuild() -> Bool {
        guard checkpointer.isFullForBuilding else { return false }
        pipeline.drain()
        _ = checkpointer.assistForBuilding()
        return true
    }

    /// Waits until there is room for another long value in the journal. May block.
    private func waitForRoomForLong() {
        guard checkpointer.isFullForLong else { return }
        pipeline.drain()
        // One that began after this has whatever long value there was before. If it fails, that is seen next.
        _ = checkpointer.assistForLong()
    }
}
