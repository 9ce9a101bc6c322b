import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// The rights of one connection.
struct Rights: Equatable, Sendable {
    /// The right in all databases.
    private(set) var everywhere: AccessLevel?
    /// Rights in single databases, if they are higher than the rights in all databases.
    private(set) var databases: [String: AccessLevel] = [:]

    /// Adds a right.
    /// - Parameter database: nil for all.
    mutating func allow(_ level: AccessLevel, in database: String?) {
        if let database {
            databases[database] = max(databases[database] ?? level, level)
        } else {
            everywhere = max(everywhere ?? level, level)
        }
        databases = databases.filter { covers($0.value, in: nil) == false }
    }

    /// - Parameter database: nil for all.
    func covers(_ level: AccessLevel, in database: String?) -> Bool {
        // Outboxes are written only by the daemon and administrators.
        let level = level == .write && database.map(DatabaseName.isKept) ?? false ? .administer : level
        if let everywhere, everywhere >= level { return true }
        guard let database, let own = databases[database] else { return false }
        return own >= level
    }

    /// Whether a level is allowed in any database.
    func coversSomewhere(_ level: AccessLevel) -> Bool {
        covers(level, in: nil) || databases.values.contains { $0 >= level }
    }

    /// Whether these rights include all of `others`.
    func covers(_ others: Rights) -> Bool {
        if let everywhere = others.everywhere, !covers(everywhere, in: nil) { return false }
        return others.databases.allSatisfy { covers($0.value, in: $0.key) }
    }

    /// Whether calls can be refused.
    var areLimited: Bool { everywhere != .administer }

    /// Why a call is not allowed: the command, the database or the channel, and the missing right.
    enum Refusal: Equatable {
        case command(Missing)
        /// The command would be allowed in another database.
        case database(String, Missing)
        case channel([UInt8], Missing)

        /// Redis' error text with the missing level, and with the database if the command is allowed in another one.
        func text(_ row: CommandMetadata, user: String) -> String {
            switch self {
            case .command(let missing):
                "User \(user) has no permissions to run the '\(row.name)' command \(missing.text)"
            case .database(let name, let missing):
                "User \(user) has no permissions to run the '\(row.name)' command in database "
                    + "'\(name.prefix(Self.shownMax))' \(missing.text)"
            case .channel(let name, let missing):
                "User \(user) has no permissions to access the "
                    + "'\(String(decoding: name.prefix(Self.shownMax), as: UTF8.self))' channel \(missing.text)"
            }
        }

        static let shownMax = 128
    }

    /// The right that a call needs.
    struct Missing: Equatable {
        let level: AccessLevel
        var isEverywhere = false

        var text: String { "(needs \(level.name)\(isEverywhere ? " in all databases" : ""))" }
    }

    /// - Parameters:
    ///   - selected: the database in which the call would run.
    ///   - word: returns the bytes of the call's words.
    /// - Returns: nil if the call is allowed.
    func refusal(
        _ row: CommandMetadata, count: Int, selected: String, _ word: (Int) -> UnsafeRawBufferPointer
    ) -> Refusal? {
        // All rights allow every call.
        guard areLimited else { return nil }
        guard let required = row.requiredRight(count: count) else {
            return namedRefusal(row, count, word) ?? broadcastRefusal(row, count, word)
        }
        switch required.place {
        case .everywhere:
            if !covers(required.level, in: nil) { return .command(Missing(level: required.level, isEverywhere: true)) }
        case .anywhere: if !coversSomewhere(required.level) { return .command(Missing(level: required.level)) }
        case .selected:
            if !covers(required.level, in: selected) {
                let missing = Missing(level: required.level)
                return coversSomewhere(required.level) ? .database(selected, missing) : .command(missing)
            }
        }
        return namedRefusal(row, count, word) ?? channelRefusal(row, count, word)
    }

    private func namedRefusal(
        _ row: CommandMetadata, _ count: Int, _ word: (Int) -> UnsafeRawBufferPointer
    ) -> Refusal? {
        for named in row.namedDatabases(count: count, isWord: { equalsIgnoringCase(word($0), $1) }) {
            // Longer words are not database names.
            let name = String(decoding: word(named.word).prefix(Refusal.shownMax), as: UTF8.self)
            if !covers(named.level, in: name) {
                let missing = Missing(level: named.level)
                return coversSomewhere(named.level) ? .database(name, missing) : .command(missing)
            }
        }
        return nil
    }

    /// Refuses CLIENT TRACKING ON with BCAST to users without read access to all databases, because it reports keys of
    /// all databases.
    private func broadcastRefusal(
        _ row: CommandMetadata, _ count: Int, _ word: (Int) -> UnsafeRawBufferPointer
    ) -> Refusal? {
        guard row == .clientTracking, !covers(.read, in: nil), count > 2, equalsIgnoringCase(word(2), "ON") else {
            return nil
        }
        var index = 3
        while index < count {
            if equalsIgnoringCase(word(index), "BCAST") {
                return .command(Missing(level: .read, isEverywhere: true))
            }
            let hasValue = equalsIgnoringCase(word(index), "PREFIX") || equalsIgnoringCase(word(index), "REDIRECT")
            index += hasValue ? 2 : 1
        }
        return nil
    }

    /// Event channels reveal changes: subscribing to them needs read access to the database, publishing to them needs
    /// write access.
    private func channelRefusal(
        _ row: CommandMetadata, _ count: Int, _ word: (Int) -> UnsafeRawBufferPointer
    ) -> Refusal? {
        // Sharded channels are separate from event channels.
        guard row.usesChannels, row.channels == nil else { return nil }
        let level: AccessLevel = row.flags.contains(.publishes) ? .write : .read
        let last = row.flags.contains(.publishes) ? 1 : count - 1
        guard last >= 1 else { return nil }
        for index in 1...last {
            let name = word(index)
            let concerned =
                row.isOfPatterns ? EventChannel.databases(ofPattern: name) : EventChannel.databases(of: name)
            switch concerned {
            case .none: break
            case .one(let database):
                if !covers(level, in: database) { return .channel([UInt8](name), Missing(level: level)) }
            case .all:
                if !covers(level, in: nil) {
                    return .channel([UInt8](name), Missing(level: level, isEverywhere: true))
                }
            }
        }
        return nil
    }
}

extension CommandMetadata {
    /// Whether the channels in the command's calls are patterns.
    fileprivate var isOfPatterns: Bool { self == .psubscribe }
}
