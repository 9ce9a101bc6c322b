/// The description that COMMAND returns: Redis' flags, categories and key specifications, computed from the metadata.
extension CommandMetadata {
    package var flagNames: [String] {
        guard runsByItself else { return [] }
        return flags.names + (keys.countAt > 0 ? ["movablekeys"] : [])
    }

    /// The key positions that COMMAND shows. A command with subcommands has no key positions.
    package var shownKeys: KeyPositions {
        if let channels { return channels }
        return subcommands.isEmpty && keys.countAt == 0 ? keys : .none
    }

    /// The flags that COMMAND DOCS shows.
    package var documentationFlags: [String] {
        replacement != nil ? ["deprecated"] : flags.contains(.systemCommand) ? ["syscmd"] : []
    }

    // MARK: Categories

    /// All categories, in the order of Redis.
    package static let categoryOrder = [
        "keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "geo", "stream", "pubsub",
        "admin", "fast", "slow", "dangerous", "connection", "transaction", "scripting",
    ]

    /// The command's categories for Redis' access lists, such as `@read`.
    package var categories: [String] {
        var own: Set<String> = [flags.contains(.fast) ? "fast" : "slow"]
        if let category { own.insert(category) }
        if subcommands.isEmpty {
            if category == nil, let category = group.category { own.insert(category) }
            if flags.contains(.write) { own.insert("write") }
            if flags.contains(.readonly), !flags.contains(.runsScript) { own.insert("read") }
            if flags.contains(.pubsub) { own.insert("pubsub") }
            if !flags.isDisjoint(with: [.admin, .administrative]) { own.formUnion(["admin", "dangerous"]) }
            if flags.contains(.dangerous) { own.insert("dangerous") }
        }
        return Self.categoryOrder.filter { own.contains($0) }.map { "@" + $0 }
    }

    // MARK: Keys

    /// Where a call has keys, and how it uses them, in the form of Redis' key specifications.
    package struct KeySpecification {
        /// An explanation of the flags; nil if none is needed.
        package let notes: String?
        package let flags: [String]
        package let index: Int
        /// The position of the last key. A negative position is counted from the end of the call, any other position
        /// from `index`.
        package let last: Int
        package let step: Int
        /// Whether the word at `index` is the number of keys, and the keys follow this word.
        package var isCounted = false
    }

    package var keySpecifications: [KeySpecification] {
        if keys.countAt > 0 {
            return [
                KeySpecification(
                    notes: keyNotes, flags: access[0], index: keys.countAt, last: 0, step: keys.step, isCounted: true)
            ]
        }
        let keys = shownKeys
        guard keys.first > 0, keys.step > 0 else { return [] }
        guard access.count == 2 else {
            return [
                KeySpecification(
                    notes: keyNotes, flags: access[0], index: keys.first,
                    last: keys.last < 0 ? keys.last : keys.last - keys.first, step: keys.step)
            ]
        }
        return [
            KeySpecification(notes: nil, flags: access[0], index: keys.first, last: 0, step: 1),
            KeySpecification(
                notes: nil, flags: access[1], index: keys.first + 1, last: keys.last < 0 ? -1 : 0, step: 1),
        ]
    }
}
