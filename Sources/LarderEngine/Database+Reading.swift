import LevelDB

/// What a read found, and what its answer has to wait for.
package struct ReadResult: Sendable {
    /// The fresh entry, if there is one.
    package let record: Record?
    package let ticket: CommitTicket
}

extension Database {
    /// The fresh entry of a key. May read from the disk; a shard's lock is held only to look into the overlay.
    package func read(_ key: Key, now: Int64, fillCache: Bool = true) throws(LarderError) -> ReadResult {
        try ForkGuard.check("get")
        while true {
            let shard = shard(shardIndex(key))
            shard.lock.lock()
            let state = applied
            let pending = shard.overlay[key]
            shard.lock.unlock()

            if let pending {
                let record = pending.record.flatMap { state.rules.freshness($0.header, now: now) == .fresh ? $0 : nil }
                count(record != nil)
                return ReadResult(record: record, ticket: CommitTicket(sequence: max(pending.sequence, state.sequence)))
            }
            let ticket = CommitTicket(sequence: state.sequence)
            guard let store = try readableStore(state, "get") else {
                count(false)
                return ReadResult(record: nil, ticket: ticket)
            }
            do throws(LarderError) {
                let record = try load(key, from: store, fillCache: fillCache)
                    .flatMap { state.rules.freshness($0.header, now: now) == .fresh ? $0 : nil }
                count(record != nil)
                return ReadResult(record: record, ticket: ticket)
            } catch {
                // Purged between the look into the overlay and the read: look again.
                if error.code == .purged, appliedState.store !== store { continue }
                throw error
            }
        }
    }

    private func count(_ hit: Bool) {
        if hit { context.statistics.hits.add() } else { context.statistics.misses.add() }
    }

    /// The store to read; nil when there are no files.
    func readableStore(_ state: State, _ operation: String) throws(LarderError) -> EpochStore? {
        switch state.presence {
        case .open(let store): return store
        case .absent: return nil
        case .failed, .closed:
            try prepare(forWriting: false)
            return try readableStore(appliedState, operation)
        case .shut(let error): throw error
        case .deleted: throw deletedError(operation)
        }
    }

    /// A record from the store, expired or not.
    func load(
        _ key: Key, from store: EpochStore, fillCache: Bool = true, snapshot: LevelDB.Snapshot? = nil
    ) throws(LarderError) -> Record? {
        guard let stored = try store.get(key, fillCache: fillCache, snapshot: snapshot) else { return nil }
        do throws(RecordHeader.Defect) {
            return try Record(parsing: stored)
        } catch {
            throw Self.defect(error, database: name, key: key)
        }
    }

    static func defect(_ defect: RecordHeader.Defect, database: String, key: Key) -> LarderError {
        switch defect {
        case .newerVersion(let version):
            LarderError(
                .newerFormat, "the entry has record version \(version), this Larder reads \(RecordHeader.version)",
                operation: "get", database: database, key: key.description, underlying: defect)
        case .truncated, .unknownFlags:
            LarderError(
                .damaged, "the entry's header cannot be read (\(defect))", operation: "get", database: database,
                key: key.description, underlying: defect)
        }
    }
}
