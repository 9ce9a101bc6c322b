import LarderEngine

/// A prepared change of an entry: encoded, with a validated key and policy.
///
/// A value type, so that a synchronous caller can apply it directly and an asynchronous caller can pass it to another
/// thread.
struct EntryWrite: Sendable {
    /// The change of the entry.
    enum Action: Sendable {
        case put(Payload, Codec, EntryPolicy.Checked, Tags?)
        case remove
    }

    /// The condition of the change, checked when it is applied.
    enum Condition: Sendable {
        case none
        /// There is no fresh entry.
        case absent
        /// There is a fresh entry, whatever its value.
        case present
        /// There is a fresh entry that holds these bytes.
        case equal(Payload)
        /// The fresh entry, or its absence, is unchanged since it was read.
        case unchanged(Record?)
        /// The lease with this token, under which the value was fetched, is still valid.
        case lease(UInt64)
    }

    let key: Key
    let action: Action
    var condition = Condition.none
    var durability: Durability?

    var operation: String {
        switch action {
        case .put: "set"
        case .remove: "remove"
        }
    }

    /// Whether the change does nothing if the database has no files.
    var needsFiles: Bool {
        switch (condition, action) {
        case (.present, _), (.equal, _), (.unchanged(.some), _), (_, .remove): true
        case (.none, .put), (.absent, .put), (.unchanged(nil), .put), (.lease, .put): false
        }
    }

    /// Whether the previous entry must be loaded.
    var loads: Bool {
        switch condition {
        case .none, .lease: action.loads
        case .absent, .present, .equal, .unchanged: true
        }
    }
}

extension EntryWrite {
    /// Whether the condition of this change holds. This change must be the only one of the update.
    func isAllowed(_ update: inout Update) -> Bool {
        switch condition {
        case .none: true
        case .lease(let token):
            update.holdsLease(
                0, token, tags: action.tags ?? (action.loads ? update.kept(0, isRefresh: true)?.tags : nil))
        default: condition.allows(update.current(0))
        }
    }
}

extension EntryWrite.Condition {
    var isLease: Bool { if case .lease = self { true } else { false } }

    fileprivate func allows(_ current: Record?) -> Bool {
        switch self {
        case .none, .lease: true
        case .absent: current == nil
        case .present: current != nil
        case .unchanged(let previous): current == previous
        case .equal(let payload):
            current?.withPayload { stored in
                payload.withBytes { $0.count == stored.count && $0.elementsEqual(stored) }
            } ?? false
        }
    }
}

extension EntryWrite.Action {
    /// Whether the change depends on the previous entry.
    var loads: Bool {
        if case .put(_, _, let policy, _) = self { policy.lifetime == .keep } else { false }
    }

    /// The tags of the new entry, unless it keeps the previous ones.
    var tags: Tags? { if case .put(_, _, _, let tags) = self { tags } else { nil } }

    var isRemoval: Bool { if case .remove = self { true } else { false } }

    /// Changes the entry at `index` of an update.
    /// - Parameters:
    ///   - ahead: how many milliseconds the larder's time is ahead of the system clock.
    ///   - long: the payload as returned by `stage`; nil if it was not staged.
    ///   - isRefresh: whether the value was fetched from an origin, under a lease.
    func apply(
        _ update: inout Update, _ index: Int, ahead: Int64, long: LargeValue? = nil, isRefresh: Bool = false
    ) {
        switch self {
        case .remove: update.remove(index)
        case .put(let payload, let codec, let policy, let tags):
            let previous = loads ? update.kept(index, isRefresh: isRefresh) : nil
            let rule = policy.rule(
                update.rules.settings, now: update.now, ahead: ahead, previous: previous?.header.rule)
            let grace = policy.grace(previous: previous?.header)
            let tags = tags ?? previous?.tags
            payload.withBytes {
                update.put(index, payload: $0, long: long, rule: rule, grace: grace, codec: codec, tags: tags)
            }
        }
    }
}

extension CacheSource {
    /// Returns a change that stores a model.
    func write<Value: Encodable>(
        _ value: Value, _ key: some CacheKey, _ policy: EntryPolicy, _ tags: [String],
        if condition: EntryWrite.Condition = .none, _ durability: Durability?
    ) throws(LarderError) -> EntryWrite {
        let key = try self.key(key, "set")
        let (payload, codec) = try encode(value, key)
        return EntryWrite(
            key: key, action: try put(payload, codec, key, policy, tags), condition: condition, durability: durability)
    }

    /// Returns the action that stores an encoded value.
    /// - Parameter kept: the tags of the entry if `tags` is empty.
    func put(
        _ payload: Payload, _ codec: Codec, _ key: Key, _ policy: EntryPolicy, _ tags: [String],
        keeping kept: Tags? = nil
    ) throws(LarderError) -> EntryWrite.Action {
        let tags = try Tags.checked(tags, database.name, key) ?? kept
        return .put(payload, codec, try policy.checked(database.name, key), tags)
    }

    /// Returns a change that stores bytes.
    func write(
        bytes: [UInt8], _ key: some CacheKey, _ policy: EntryPolicy, _ tags: [String], _ durability: Durability?
    ) throws(LarderError) -> EntryWrite {
        let key = try self.key(key, "set")
        let payload = Payload.bytes(bytes)
        try payload.check(key, database.name)
        return EntryWrite(key: key, action: try put(payload, .raw, key, policy, tags), durability: durability)
    }

    /// Returns a change that removes an entry if it holds `value`.
    func removal<Value: Encodable>(_ key: some CacheKey, ifEqual value: Value, _ durability: Durability?)
        throws(LarderError) -> EntryWrite
    {
        EntryWrite(
            key: try self.key(key, "remove"), action: .remove, condition: try holding(value, key),
            durability: durability)
    }

    /// Returns the condition that a fresh entry holds `value`, encoded by the cache's codec.
    func holding<Value: Encodable>(_ value: Value, _ key: some CacheKey) throws(LarderError) -> EntryWrite.Condition {
        .equal(try encode(value, try self.key(key, "set")).0)
    }
}

extension Cache {
    /// Applies a change. May block.
    /// - Returns: whether the condition of the change held; also false for the removal of a missing entry.
    func perform(_ write: EntryWrite) throws(LarderError) -> Bool {
        try source.whileOpen(write.operation) { (_) throws(LarderError) in
            if write.needsFiles, try !source.hasFiles() { return false }
            let durability = write.durability ?? self.durability
            let long = try stage(write, durability)
            return try source.database.commit([write.key], loading: write.loads, durability: durability) { update in
                guard write.isAllowed(&update) else { return false }
                write.action.apply(
                    &update, 0, ahead: source.database.timeAhead, long: long, isRefresh: write.condition.isLease)
                return true
            }
        }
    }

    /// Writes a long value to a file before its commit, so that the commit does not delay other threads. Returns nil if
    /// the value is not long, or cannot be written before.
    private func stage(_ write: EntryWrite, _ durability: Durability?) throws(LarderError) -> LargeValue? {
        // An entry with tags cannot be staged: its tags are stored with a number that is known only at the commit.
        guard case .put(let payload, _, let policy, nil) = write.action, !write.action.loads,
            payload.count >= Database.largeValueBytesMin
        else { return nil }
        let ahead = source.database.timeAhead
        let settings = source.database.rules.settings
        let rule = policy.rule(settings, now: source.database.now(), ahead: ahead, previous: nil)
        return try payload.withBytes { bytes in
            Result { () throws(LarderError) in
                try source.database.stage(
                    bytes, write.key, rule: rule, grace: policy.grace, durability: durability)
            }
        }.get()
    }
}
