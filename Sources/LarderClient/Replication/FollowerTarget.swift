import LarderRESP

/// Applies changes of a source to a target.
struct FollowerTarget {
    /// The numbers of changes by outcome.
    struct Counts {
        var stored = 0
        var removed = 0
        var kept = 0
    }

    let client: BlockingLarderClient
    private let options: ReplicationOptions
    private let rule: ReplicationRule
    private let tags: Set<[UInt8]>
    /// The entries of the target, without values.
    private let entries: EntryReader

    init(_ client: BlockingLarderClient, _ options: ReplicationOptions, _ rule: ReplicationRule) {
        self.client = client
        self.options = options
        self.rule = rule
        tags = options.allTags
        entries = EntryReader(client: client, prefix: options.prefix, hasValues: false)
    }

    /// Returns whether the target has no entry that this follower would replicate.
    func isEmpty() throws(LarderClientError) -> Bool {
        var after: [UInt8]?
        repeat {
            let step = try entries.step(after: after)
            if step.entries.contains(where: { wants($0.tags) }) { return false }
            after = step.next
        } while after != nil
        return true
    }

    /// Applies the changes in one reply of CHANGES. If this throws, some changes may have been applied; applying them
    /// again is harmless.
    /// - Parameters:
    ///   - known: in a full pass, the time range of those target entries that the source must have seen. Such entries
    ///     lose conflicts, and are removed if the source does not list them.
    ///   - notified: if the source follows the target too, the time before which the target has received all entries of
    ///     the source. If the target lacks an entry from before that time, the target has removed it. Such an entry is
    ///     not stored again.
    func apply(
        _ reply: FeedReply, _ known: ClosedRange<Int64>?, notifiedUntil notified: Int64?
    ) throws(LarderClientError) -> Counts {
        var counts = Counts()
        // If the target had entries of its own at first, an entry's time does not show whether the entry was
        // replicated. So in this case, entries in `known` do not lose conflicts.
        let over = known.flatMap { $0.lowerBound <= 1 ? $0.upperBound : nil }
        var missing: Set<[UInt8]> = []
        if let range = reply.range, let known { missing = try removeUnlisted(reply, range, known, &counts) }
        var commands: [[[UInt8]]] = []
        for item in reply.items {
            switch item.change {
            case .stored(let entry):
                if let notified, item.time <= notified, missing.contains(entry.key) {
                    counts.kept += 1
                } else if wants(entry.tags) {
                    commands.append(entry.placing(item.version, over: over))
                } else {
                    // The entry has no replicated tag. A previous version may have had one: remove that version.
                    commands.append(removal(entry.key, item.version))
                }
            case .removed(let key): commands.append(removal(key, item.version))
            case .purged:
                try send(&commands, &counts)
                try purge(item.version, of: options.prefix, tags.isEmpty ? nil : Array(tags), &counts)
            case .purgedPrefix(let purged):
                // Purge only keys with both prefixes, `purged` and the follower's: no other keys are replicated.
                guard purged.starts(with: options.prefix) || options.prefix.starts(with: purged) else { continue }
                let common = purged.count < options.prefix.count ? options.prefix : purged
                try send(&commands, &counts)
                try purge(item.version, of: common, tags.isEmpty ? nil : Array(tags), &counts)
            case .purgedTags(let purged):
                try send(&commands, &counts)
                try purge(item.version, of: options.prefix, purged, &counts)
            }
        }
        try send(&commands, &counts)
        return counts
    }

    private func wants(_ tags: [[UInt8]]) -> Bool { self.tags.isEmpty || !self.tags.isDisjoint(with: tags) }

    private func removal(_ key: [UInt8], _ version: String) -> [[UInt8]] {
        [Array("UNPLACE".utf8), key, Array(version.utf8)]
            + (tags.isEmpty ? [] : [Array("TAG".utf8)] + tags.sorted { $0.lexicographicallyPrecedes($1) })
    }

    // MARK: Sending

    private func send(_ commands: inout [[[UInt8]]], _ counts: inout Counts) throws(LarderClientError) {
        guard !commands.isEmpty else { return }
        let batch = commands
        commands = []
        if let decide = rule.decide {
            for command in batch { try ConflictedChange(command, client).apply(decide, &counts) }
            return
        }
        let replies = try client.pipeline(batch)
        guard replies.count == batch.count else {
            throw LarderClientError.unexpectedReply(to: "PLACE", "one answer for each change")
        }
        for (command, reply) in zip(batch, replies) { try counts.add(reply, to: command) }
    }

    private func purge(
        _ version: String, of prefix: [UInt8], _ tags: [[UInt8]]?, _ counts: inout Counts
    ) throws(LarderClientError) {
        var words = wordList("PURGE", "UPTO", version)
        if !prefix.isEmpty { words += [Array("PREFIX".utf8), prefix] }
        if let tags { words += [Array("TAG".utf8)] + tags }
        counts.removed += Int(clamping: try client.command(bytes: words).checked("PURGE").int ?? 0)
    }

    // MARK: Entries that a full pass does not list

    /// Removes the entries of the target that were stored in the time range `known`, and that the source does not list.
    /// The source must have seen these entries, so the source has removed them.
    /// - Returns: the keys that the source lists and the target lacks.
    private func removeUnlisted(
        _ reply: FeedReply, _ range: (after: [UInt8]?, through: [UInt8]?), _ known: ClosedRange<Int64>,
        _ counts: inout Counts
    ) throws(LarderClientError) -> Set<[UInt8]> {
        var named: Set<[UInt8]> = []
        for item in reply.items {
            if case .stored(let entry) = item.change { named.insert(entry.key) }
        }
        var missing = named
        // This version is later than all changes of the last millisecond in the range.
        let version = "\(known.upperBound)-\(UInt64.max)"
        var after = range.after
        var isEnd = false
        while !isEnd {
            let step = try entries.step(after: after)
            var commands: [[[UInt8]]] = []
            for entry in step.entries {
                if let through = range.through, through.lexicographicallyPrecedes(entry.key) {
                    isEnd = true
                    break
                }
                missing.remove(entry.key)
                if !named.contains(entry.key), known.contains(entry.storedAt), wants(entry.tags) {
                    commands.append(removal(entry.key, version))
                }
            }
            try send(&commands, &counts)
            after = step.next
            isEnd = isEnd || after == nil
        }
        return missing
    }
}

extension FollowerTarget.Counts {
    /// Counts the outcome of a change.
    /// - Throws: the target's error.
    mutating func add(_ reply: RESPValue, to command: [[UInt8]]) throws(LarderClientError) {
        switch reply.string {
        case "stored": stored += 1
        case "removed", "expired": removed += 1
        case "kept", "absent": kept += 1
        default:
            let key = command.count > 1 ? printableKey(command[1]) : nil
            guard let text = reply.errorMessage else {
                throw LarderClientError.unexpectedReply(to: "PLACE", "the outcome of a change", key: key)
            }
            throw LarderClientError.server(text, operation: "PLACE", key: key)
        }
    }
}

/// Reads the entries of a daemon's databases in the order of their keys, in steps of up to 1000. A reader can continue
/// after any key, also on another connection.
package struct EntryReader {
    package let client: BlockingLarderClient
    private let prefix: [UInt8]
    private let hasValues: Bool

    /// - Parameter hasValues: whether to read the values. If not, they are empty.
    package init(client: BlockingLarderClient, prefix: [UInt8], hasValues: Bool = true) {
        (self.client, self.prefix, self.hasValues) = (client, prefix, hasValues)
    }

    /// Calls `body` with all entries of the selected database after a key, step by step.
    package func forEachStep(after key: [UInt8]? = nil, _ body: ([StoredEntry]) throws -> Void) throws {
        var after = key
        repeat {
            let step = try step(after: after)
            try body(step.entries)
            after = step.next
        } while after != nil
    }

    /// Reads the next entries after a key.
    /// - Returns: the entries, and the key after which to continue; nil at the end of the database.
    func step(after key: [UInt8]?) throws(LarderClientError) -> (entries: [StoredEntry], next: [UInt8]?) {
        var words = wordList("ENTRIES", "COUNT", "1000") + (hasValues ? [] : wordList("NOVALUES"))
        if let key { words += [Array("AFTER".utf8), key] }
        if !prefix.isEmpty { words += [Array("PREFIX".utf8), prefix] }
        return try client.perform(
            Request(words, isRead: true, expects: "a key and a list of entries") { [hasValues] reply in
                guard let parts = reply.elements, parts.count == 2, let list = parts[1].elements else { return nil }
                let entries = list.compactMap { $0.elements.flatMap { StoredEntry($0, hasValue: hasValues) } }
                return entries.count == list.count ? (entries, parts[0].bytes) : nil
            })
    }
}
