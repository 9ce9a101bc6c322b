/// How much of the entries a command needs to see.
enum Loading {
    /// Nothing: it writes blindly.
    case none
    /// Their headers. Their payloads, which may be large, are not kept.
    case headers
    case records
}

/// What a command read from LevelDB before it took the locks of its keys' shards.
struct ColdReads {
    /// One key of the command.
    fileprivate struct Slot {
        /// Set while the shard knows that the key is being read.
        var mark: Shard.Mark?
        var value: Value?
    }

    enum Value {
        case record(Record?)
        /// The header, and how long the record is.
        case header(RecordHeader, byteCount: Int)
        /// There is a record whose header this version cannot read.
        case unreadable(LarderError)

        /// nil where there is none, or none that can be read.
        fileprivate var header: RecordHeader? {
            switch self {
            case .record(let record): record?.header
            case .header(let header, _): header
            case .unreadable: nil
            }
        }
    }

    fileprivate var store: EpochStore?
    fileprivate var slots: [Slot]

    /// Whether the blocks that records are read from stay in the block cache.
    fileprivate let fillCache: Bool

    /// How long the records together may be that are read.
    fileprivate var room: Int

    init(count: Int, fillCache: Bool, bytesMax: Int = .max) {
        slots = Array(repeating: Slot(), count: count)
        self.fillCache = fillCache
        room = bytesMax
    }
}

extension Database {
    /// So often a command's keys are read without the locks. Then they are so hot that what changed meanwhile is read
    /// under the locks.
    static let coldAttempts = 2

    /// Reads what is not known in memory and not read yet. Called without any lock.
    func readCold(_ keys: [Key], _ loading: Loading, _ cold: inout ColdReads, attempt: Int) throws(LarderError) {
        let store = try readableStore(appliedState, "update")
        if cold.store !== store {
            forget(keys, &cold)
            cold.store = store
        }
        guard let store, attempt <= Self.coldAttempts else { return }
        for (position, key) in keys.enumerated() where cold.slots[position].value == nil {
            let shard = shard(shardIndex(key))
            let isKnown = shard.lock.withLock {
                if shard.find(key) != nil { return true }
                let isBegun = cold.slots[position].mark != nil
                cold.slots[position].mark = isBegun ? shard.mark(key) : shard.beginColdRead(key)
                return false
            }
            if isKnown { continue }
            do throws(LarderError) {
                let value = try value(key, loading, in: store, cold.fillCache)
                cold.slots[position].value = value
                if case .record(let record?) = value { cold.room = max(-1, cold.room - record.stored.count) }
            } catch {
                // The store was replaced meanwhile: the next attempt reads the new one.
                guard store.ending != .none, appliedState.store !== store else { throw error }
            }
            if cold.room < 0 {
                throw LarderError(
                    .invalidArgument, "the entries are too long to be read all at once", operation: "update",
                    database: name)
            }
        }
    }

    /// What a command sees of an entry in memory. Called with the lock of its shard held.
    private func value(_ entry: EntryPointer, _ loading: Loading, _ key: Key) throws(LarderError) -> ColdReads.Value {
        guard let bytes = entry.record else { return .record(nil) }
        let defect: RecordHeader.Defect
        do throws(RecordHeader.Defect) {
            guard loading == .headers else { return .record(try Record(parsing: [UInt8](bytes))) }
            return .header(try RecordHeader(parsing: bytes), byteCount: bytes.count)
        } catch let caught {
            defect = caught
        }
        let error = Self.defect(defect, database: name, key: key)
        guard loading == .headers else { throw error }
        return .unreadable(error)
    }

    private func value(
        _ key: Key, _ loading: Loading, in store: EpochStore, _ fillCache: Bool
    ) throws(LarderError) -> ColdReads.Value {
        guard loading == .headers else { return .record(try load(key, from: store, fillCache: fillCache)) }
        guard let (parsed, byteCount) = try store.header(of: key) else { return .record(nil) }
        switch parsed {
        case .success(let header): return .header(header, byteCount: byteCount)
        case .failure(let defect): return .unreadable(Self.defect(defect, database: name, key: key))
        }
    }

    /// What is stored under `keys`, with the locks held of all their shards; nil when too much of what was read cold is
    /// out of date.
    /// - Parameter ticket: raised to what the answer has to wait for.
    func gather(
        _ keys: [Key], _ loading: Loading, _ cold: inout ColdReads, attempt: Int, now: Int64, ticket: inout UInt64
    ) throws(LarderError) -> [ColdReads.Value]? {
        var store: EpochStore?
        switch applied.presence {
        case .open(let open): store = open
        case .absent: break
        case .closed, .failed: return nil
        case .deleted: throw deletedError("update")
        case .shut(let error): throw error
        }
        let isCurrent = cold.store === store
        var result: [ColdReads.Value] = []
        result.reserveCapacity(keys.count)
        var isComplete = true
        for (position, key) in keys.enumerated() {
            fetchAhead(keys, position)
            let shard = shard(shardIndex(key))
            if let entry = shard.find(key) {
                ticket = max(ticket, undecided(entry))
                let value = try self.value(entry, loading, key)
                if let header = value.header, applied.rules.freshness(header, now: now) == .expired {
                    shard.foundExpired(entry)
                }
                result.append(value)
            } else if let value = cold.slots[position].value, isCurrent,
                cold.slots[position].mark == shard.mark(key)
            {
                result.append(value)
            } else if let store, attempt >= Self.coldAttempts {
                result.append(try self.value(key, loading, in: store, cold.fillCache))
            } else if store == nil {
                result.append(.record(nil))
            } else {
                cold.slots[position].value = nil
                isComplete = false
            }
        }
        return isComplete ? result : nil
    }

    /// Tells the shards that nothing is being read any more. Called without any lock.
    func forget(_ keys: [Key], _ cold: inout ColdReads) {
        for (position, key) in keys.enumerated() where cold.slots[position].mark != nil {
            let shard = shard(shardIndex(key))
            shard.lock.withLock { shard.endColdRead(key) }
            cold.slots[position] = ColdReads.Slot()
        }
    }
}
