import LarderEngine
import LarderOriginClients
import LarderOutboxes
import LarderRESP

/// Write-behind: the daemon acknowledges a write, queues it in the outbox, and delivers it to the origin later.
extension Call {
    /// Writes entries of the database, and queues the same writes in its outbox. Either all of these changes are
    /// committed, or none.
    /// - Returns: the reply, which must wait for the commit.
    mutating func writeBehind(
        _ command: OriginCommand, _ tier: OriginTier, _ outbox: Outbox
    ) throws(CommandError) -> RESPValue {
        let (keys, writes) = Self.last(command, now)
        let names = keys.map { Array($0.bytes) }
        let sizes = zip(names, writes).map { $0.count + ($1?.value.count ?? 0) }
        let bytes = sizes.reduce(0, +)
        if let refusal = outbox.index.refusal(of: names, bytes: bytes, limit: "--max-origin-keys") {
            throw CommandError("ORIGIN \(refusal)")
        }
        let interval = database.rules.policy.intervalMilliseconds
        let now = now
        if !database.isReady(forWriting: true) { try prepare(database) }
        let isRemoval = if case .remove = command { true } else { false }
        // For DEL, the number of keys that had a value; otherwise 0. Nil while the origin is being changed: the outbox
        // then accepts no writes.
        let removed = try update(keys, and: outbox.database, keys, loading: (isRemoval, isRemoval)) {
            (update, other) throws(LarderError) -> Int? in
            guard let first = outbox.index.note(names, bytes: sizes, now: now) else { return nil }
            var removed = 0
            for (index, write) in writes.enumerated() {
                if isRemoval, Self.isThere(index, update, other, now) { removed += 1 }
                let entry = OutboxEntry(
                    number: first + UInt64(index), acceptedAt: now, until: write?.until, value: write?.value)
                if let write {
                    let most = interval.map { now + $0 } ?? .max
                    let rule = write.until.map { DeadlineRule.own(min($0, most)) } ?? .governed
                    write.value.withUnsafeBytes { update.put(index, payload: $0, rule: rule) }
                } else {
                    update.removeStored(index)
                }
                entry.bytes.withUnsafeBytes { other.put(index, payload: $0, rule: .ownNever) }
            }
            return removed
        }
        guard let removed else { throw CommandError("ORIGIN the origin of this database is being changed: try again") }
        tier.hasWrittenHere(names)
        return isRemoval ? .integer(Int64(removed)) : .simpleString("OK")
    }

    /// A value, and its deadline in milliseconds since 1970 (nil for none). A removal is represented by nil.
    private typealias Write = (value: [UInt8], until: Int64?)

    /// Returns the keys without duplicates, and each key's last write in the command. ``OriginRunner`` has checked the
    /// lengths of the keys.
    private static func last(_ command: OriginCommand, _ now: Int64) -> (keys: [Key], writes: [Write?]) {
        var places: [Key: Int] = [:]
        var (keys, writes): ([Key], [Write?]) = ([], [])
        func add(_ bytes: [UInt8], _ write: Write?) {
            let key = Key(bytes)
            if let place = places[key] {
                writes[place] = write
                return
            }
            places[key] = keys.count
            keys.append(key)
            writes.append(write)
        }
        switch command {
        case .write(let all):
            for write in all {
                switch write.lifetime {
                case .unlimited, .kept: add(write.key, (write.value, nil))
                case .milliseconds(let span): add(write.key, (write.value, now + span))
                case .until(let instant): add(write.key, (write.value, instant))
                }
            }
        case .remove(let all): for key in all { add(key, nil) }
        case .other, .script: break
        }
        return (keys, writes)
    }

    /// Whether a key has a value: according to its queued write if there is one, otherwise according to the database.
    private static func isThere(_ index: Int, _ update: Update, _ outbox: Update, _ now: Int64) -> Bool {
        guard let waiting = outbox.current(index)?.withPayload({ OutboxEntry(parsing: $0) }) else {
            return update.isFresh(index)
        }
        return waiting.value != nil && !waiting.isOver(now: now)
    }
}
