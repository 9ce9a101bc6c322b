import LarderEngine

/// A requested change of an entry: an encoded value with a validated key, policy and tags, or a removal.
///
/// A value type, so that asynchronous callers can pass it to another thread, and batches can collect it. An ``Update``
/// turns it into a record during the commit. The record depends on the time of the commit, on the database's policy and
/// possibly on the previous entry.
struct EntryWrite: Sendable {
    /// The condition of the change, checked when it is applied.
    enum Condition: Sendable {
        case none
        /// There is no fresh entry.
        case absent
        /// There is a fresh entry, whatever its value.
        case present
        /// There is a fresh entry that holds these bytes.
        case equal(Payload)
        /// The key still has the fresh entry that the caller has read; nil: it still has none.
        case unchanged(Record?)
        /// The lease (the exclusive right to fetch the key) with this token is still valid.
        case lease(UInt64)
    }

    let key: Key
    /// The encoded value to store; nil to remove the entry.
    let payload: Payload?
    let codec: Codec
    let policy: EntryPolicy.Checked
    /// The tags of the new entry. Nil means the previous entry's tags with ``EntryPolicy/keep``, otherwise no tags.
    var tags: Tags?
    var condition = Condition.none
    var durability: Durability?

    /// Creates a change that removes an entry.
    init(removing key: Key) { (self.key, payload, codec, policy) = (key, nil, .raw, .governed) }

    /// Creates a change that stores an encoded value.
    /// - Parameters:
    ///   - database: the name of the database, if it is known, for errors.
    ///   - operation: the name of the call, for errors.
    init(
        _ payload: Payload, _ codec: Codec, _ key: Key, _ policy: EntryPolicy, _ tags: [String], _ database: String?,
        _ operation: String = "set"
    ) throws(LarderError) {
        try payload.check(key, database)
        (self.key, self.payload, self.codec) = (key, payload, codec)
        do throws(EntryPolicy.Impossible) {
            self.policy = try policy.checked()
        } catch {
            throw .invalid(error.message, operation, database, key)
        }
        if tags.isEmpty { return }
        do throws(TagRules.Impossible) {
            self.tags = try Tags(checking: tags.map { Array($0.utf8) })
        } catch {
            throw .invalid(error.message, operation, database, key)
        }
    }

    var operation: String { isRemoval ? "remove" : "set" }

    var isRemoval: Bool { payload == nil }

    /// Whether the new entry keeps the lifetime, the grace and the tags of the previous entry.
    var keepsPrevious: Bool { policy.lifetime == .keep }

    /// Whether the change stores a short value without tags, and does not depend on the previous entry.
    var isPlain: Bool {
        guard case .none = condition, let payload, tags == nil, !keepsPrevious else { return false }
        return payload.count < Database.largeValueBytesMin
    }

    /// Whether the change does nothing if the database has no files.
    var needsFiles: Bool {
        switch condition {
        case .present, .equal, .unchanged(.some): true
        case .none, .absent, .unchanged(nil), .lease: isRemoval
        }
    }

    /// What must be loaded of the previous entry for the change.
    var loading: Loading {
        switch condition {
        case .none, .lease: keepsPrevious ? .records : .none
        case .absent, .present, .equal, .unchanged: .records
        }
    }

    /// Changes the entry at `index` of an update if the condition holds.
    /// - Parameters:
    ///   - ahead: how many milliseconds the larder's time is ahead of the system clock.
    ///   - long: the payload, if `stage` has already written it to a file; otherwise nil.
    /// - Returns: whether the condition holds.
    @discardableResult
    func apply(_ update: inout Update, _ index: Int, ahead: Int64, long: LargeValue? = nil) -> Bool {
        let previous = keepsPrevious ? update.kept(index, isRefresh: condition.isLease) : nil
        let tags = tags ?? previous?.tags
        guard condition.allows(&update, index, tags) else { return false }
        guard let payload else {
            update.remove(index)
            return true
        }
        let rule = policy.rule(update.rules.settings, now: update.now, ahead: ahead, previous: previous?.header.rule)
        let grace = policy.grace ?? previous?.header.grace
        payload.withBytes {
            update.put(index, payload: $0, long: long, rule: rule, grace: grace, codec: codec, tags: tags)
        }
        return true
    }
}

extension EntryWrite.Condition {
    fileprivate var isLease: Bool { if case .lease = self { true } else { false } }

    /// Whether the condition holds for the entry at `index`.
    /// - Parameter tags: the tags of the new entry.
    fileprivate func allows(_ update: inout Update, _ index: Int, _ tags: Tags?) -> Bool {
        switch self {
        case .none: true
        case .lease(let token): update.holdsLease(index, token, tags: tags)
        case .absent: !update.isFresh(index)
        case .present: update.isFresh(index)
        case .unchanged(let previous): update.current(index) == previous
        case .equal(let payload):
            update.payload(index).map { stored in
                payload.withBytes { $0.count == stored.count && $0.elementsEqual(stored) }
            } ?? false
        }
    }
}

extension CacheSource {
    /// Returns a change that stores a model.
    func write(
        _ value: some Encodable, _ key: some CacheKey, _ policy: EntryPolicy, _ tags: [String],
        if condition: EntryWrite.Condition = .none, _ durability: Durability? = nil, _ operation: String = "set"
    ) throws(LarderError) -> EntryWrite {
        let key = try Key(checking: key, operation, database.name)
        let (payload, codec) = try codec.payload(of: value, key, database.name)
        var write = try EntryWrite(payload, codec, key, policy, tags, database.name)
        (write.condition, write.durability) = (condition, durability)
        return write
    }

    /// Returns a change that stores bytes.
    func write(
        bytes: [UInt8], _ key: some CacheKey, _ policy: EntryPolicy, _ tags: [String], _ durability: Durability?
    ) throws(LarderError) -> EntryWrite {
        var write = try EntryWrite(.bytes(bytes), .raw, try self.key(key, "set"), policy, tags, database.name)
        write.durability = durability
        return write
    }

    /// Returns a change that removes an entry if it holds `value`.
    func removal(
        _ key: some CacheKey, ifEqual value: some Encodable, _ durability: Durability?
    ) throws(LarderError) -> EntryWrite {
        var write = EntryWrite(removing: try self.key(key, "remove"))
        (write.condition, write.durability) = (try holding(value, key), durability)
        return write
    }

    /// Returns the condition that a fresh entry holds `value`, encoded by the cache's codec.
    func holding(_ value: some Encodable, _ key: some CacheKey) throws(LarderError) -> EntryWrite.Condition {
        let key = try self.key(key, "set")
        let (payload, _) = try codec.payload(of: value, key, database.name)
        try payload.check(key, database.name)
        return .equal(payload)
    }
}

extension Cache {
    /// Applies a change. May block.
    /// - Returns: whether the condition of the change held.
    func perform(_ write: EntryWrite) throws(LarderError) -> Bool {
        let lease = try source.hold(write.operation)
        // No lock is held here, so entries that were removed from memory can be freed.
        defer { source.database.releaseDetached() }
        defer { withExtendedLifetime(lease) {} }
        let isDone = try source.measuring(write.operation) { () throws(LarderError) in
            do throws(LarderError) {
                guard write.isPlain, let payload = write.payload else { return try commit(write) }
                try payload.withBytes { (payload) throws(LarderError) in
                    try source.database.put(
                        write.key, payload: payload, write.policy, codec: write.codec,
                        durability: write.durability ?? durability)
                }
                return true
            } catch {
                throw error.during(write.operation)
            }
        }
        if isDone { RunningUpdate.noteWrite(of: write.key.stored, in: source.database) }
        return isDone
    }

    /// Applies a change that is not plain: see ``EntryWrite/isPlain``.
    private func commit(_ write: EntryWrite) throws(LarderError) -> Bool {
        if write.needsFiles, try !source.hasFiles() { return false }
        let (database, durability) = (source.database, write.durability ?? durability)
        let long = try stage(write, durability)
        return try database.commit([write.key], loading: write.loading, durability: durability) { update in
            write.apply(&update, 0, ahead: database.timeAhead, long: long)
        }
    }

    /// Writes a long value to a file before its commit, so that the commit does not delay other threads. Returns nil if
    /// the value is not long, or cannot be written before the commit.
    private func stage(_ write: EntryWrite, _ durability: Durability?) throws(LarderError) -> LargeValue? {
        // An entry with tags cannot be staged: its tags are stored with a number that is known only at the commit.
        guard let payload = write.payload, write.tags == nil, !write.keepsPrevious,
            payload.count >= Database.largeValueBytesMin
        else { return nil }
        let database = source.database
        let rule = write.policy.rule(
            database.rules.settings, now: database.now(), ahead: database.timeAhead, previous: nil)
        return try payload.withBytes { (bytes) throws(LarderError) in
            try LargeValue(
                staging: bytes, write.key, in: database, rule: rule, grace: write.policy.grace, durability: durability)
        }
    }
}
