extension Database {
    /// Applies to memory those of the journal's operations, kept while the epoch was unknown, that are valid in the
    /// epoch. Called with all shard locks held, after the state has the current epoch.
    func resolve() {
        guard !unresolved.isEmpty, !applied.isEpochUnknown else { return }
        for (epoch, operations) in unresolved.epochs.sorted(by: { $0.key < $1.key }) where applied.counts(epoch) {
            for (key, operation) in operations {
                let hash = key.hash
                let shard = shards[Shard.index(hash)]
                key.withBytes { bytes in
                    guard let record = operation.record else {
                        return shard.remove(bytes, hash, sequence: operation.sequence)
                    }
                    record.withUnsafeBytes { shard.put(bytes, hash, stored: $0, sequence: operation.sequence) }
                }
            }
        }
        unresolved = UnresolvedOperations()
    }

    /// Commits these operations again, so that the segments of the journal that contain them can be removed.
    /// - Returns: the last of the new commit units; 0 if no operations were kept.
    func rewriteUnresolved() -> UInt64 {
        var newest: UInt64 = 0
        let kept = shards.withAllLocked { unresolved.epochs.sorted { $0.key < $1.key } }
        for (epoch, operations) in kept {
            var rest = Array(operations)[...]
            while !rest.isEmpty {
                let slice = rest.prefix(Self.sliceCount)
                rest = rest.dropFirst(Self.sliceCount)
                newest = max(newest, rewrite(slice, epoch))
                pipeline.drain()
            }
        }
        return newest
    }

    private func rewrite(_ slice: ArraySlice<(key: Key, value: UnresolvedOperations.Operation)>, _ epoch: UInt64)
        -> UInt64
    {
        shards.withAllLocked {
            // If the operations were resolved or purged in the meantime, memory has them, or they are no longer needed.
            guard !unresolved.isEmpty else { return 0 }
            return pipeline.enqueue(.os) { batch, unit in
                batch.select(database: name, number: number, epoch: epoch)
                for (key, operation) in slice {
                    key.withBytes { key in
                        guard let record = operation.record else { return batch.remove(key: key, sequence: unit) }
                        record.withUnsafeBytes { batch.put(key: key, record: $0, sequence: unit) }
                    }
                }
            }
        }
    }
}
