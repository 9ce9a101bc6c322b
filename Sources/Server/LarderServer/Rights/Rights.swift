import LarderCommandCatalog
import LarderEngine
import LarderRESP

struct Rights: Equatable, Sendable {
    /// The right in all databases; nil if there is none.
    private(set) var everywhere: AccessLevel?
    /// The rights in single databases that exceed the right in all databases.
    private(set) var databases: [String: AccessLevel] = [:]

    /// Adds a right.
    /// - Parameter database: the database in which the right is granted; nil for all databases.
    mutating func allow(_ level: AccessLevel, in database: String?) {
        if let database {
            databases[database] = max(databases[database] ?? level, level)
        } else {
            everywhere = max(everywhere ?? level, level)
        }
        databases = databases.filter { covers($0.value, in: nil) == false }
    }

    /// Whether a right is granted.
    /// - Parameter database: the database in which the right is needed; nil if it is needed in all databases.
    func covers(_ level: AccessLevel, in database: String?) -> Bool {
        // An outbox is a database with the queued writes of another database. Only the daemon and administrators may
        // write to it.
        let level = level == .write && database.map(DatabaseName.isKept) ?? false ? .administer : level
        if let everywhere, everywhere >= level { return true }
        guard let database, let own = databases[database] else { return false }
        return own >= level
    }

    /// Whether the level is granted in at least one database.
    func coversSomewhere(_ level: AccessLevel) -> Bool {
        covers(level, in: nil) || databases.values.contains { $0 >= level }
    }

    /// Whether these rights include all rights in `others`.
    func covers(_ others: Rights) -> Bool {
        if let everywhere = others.everywhere, !covers(everywhere, in: nil) { return false }
        return others.databases.allSatisfy { covers($0.value, in: $0.key) }
    }

    /// Whether any call can be refused; false for administrators of all databases.
    var areLimited: Bool { everywhere != .administer }

    /// The object that was refused (a command, database or channel), and the missing right.
    enum Refusal: Equatable {
        case command(Missing)
        /// The right is missing in this database, but exists in another one.
        case database(String, Missing)
        case channel([UInt8], Missing)

        /// Redis' error message, followed by the missing right in parentheses.
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

    /// A right that a call needs, but the user does not have.
    struct Missing: Equatable {
        let level: AccessLevel
        var isEverywhere = false

        var text: String { "(needs \(level.name)\(isEverywhere ? " in all databases" : ""))" }
    }

    /// Checks whether a call is allowed.
    /// - Parameters:
    ///   - count: the number of the call's words, including the command's name.
    ///   - selected: the database in which the call would run.
    ///   - word: returns the bytes of the word with an index.
    /// - Returns: nil if the call is allowed.
    func refusal(
        _ row: CommandMetadata, count: Int, selected: String, _ word: (Int) -> UnsafeRawBufferPointer
    ) -> Refusal? {
        // Users with all rights may run every call.
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
            // Names of databases have at most 64 characters, so a shortened word never names another database.
            let name = String(decoding: word(named.word).prefix(Refusal.shownMax), as: UTF8.self)
            if !covers(named.level, in: name) {
                let missing = Missing(level: named.level)
                return coversSomewhere(named.level) ? .database(name, missing) : .command(missing)
            }
        }
        return nil
    }

    /// Refuses CLIENT TRACKING ON with BCAST if the user may not read all databases: BCAST reports keys of them all.
    private func broadcastRefusal(
        _ row: CommandMetadata, _ count: Int, _ word: (Int) -> UnsafeRawBufferPointer
    ) -> Refusal? {
        guard row == .clientTracking, !covers(.read, in: nil), count > 2, equalsIgnoringCase(word(2), "ON") else {
            return nil
        }
        var index = 3
        while index < count {
            if equalsIgnoringCase(word(index), "BCAST") { return .command(Missing(level: .read, isEverywhere: true)) }
            let hasValue = equalsIgnoringCase(word(index), "PREFIX") || equalsIgnoringCase(word(index), "REDIRECT")
            index += hasValue ? 2 : 1
        }
        return nil
    }

    /// Checks the channels of a call. Messages on event channels reveal changes of a database. So subscribing needs the
    /// right to read the database, and publishing needs the right to write it.
    private func channelRefusal(
        _ row: CommandMetadata, _ count: Int, _ word: (Int) -> UnsafeRawBufferPointer
    ) -> Refusal? {
        // Sharded channels (SSUBSCRIBE, SPUBLISH) are separate from the event channels, even if their names are equal.
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
                if !covers(level, in: nil) { return .channel([UInt8](name), Missing(level: level, isEverywhere: true)) }
            }
        }
        return nil
    }
}

extension CommandMetadata {
    /// Whether the command's arguments are patterns of channels.
    fileprivate var isOfPatterns: Bool { self == .psubscribe }
}

/// The channels on which the server publishes the events of a database: `__keyspace@N__:…`, `__keyevent@N__:…` and
/// `__change@N__…`, where `N` is the name of the database.
enum EventChannel {
    /// The databases whose events are published on a channel, or on channels that match a pattern.
    enum Databases: Equatable {
        case none
        case one(String)
        case all
    }

    private static let starts = ["__keyspace@", "__keyevent@", "__change@"].map { Array($0.utf8) }
    private static let end = Array("__".utf8)

    static func databases(of channel: UnsafeRawBufferPointer) -> Databases {
        guard let start = starts.first(where: { channel.starts(with: $0) }) else { return .none }
        return .one(name(channel[start.count...]))
    }

    /// Returns the databases whose event channels a pattern may match. The result may contain too many databases, but
    /// never too few: only the text before the first special character is examined.
    static func databases(ofPattern pattern: UnsafeRawBufferPointer) -> Databases {
        let special = Array("*?[\\".utf8)
        let literal = pattern.prefix { !special.contains($0) }
        if literal.count == pattern.count { return databases(of: pattern) }
        for start in starts {
            if literal.starts(with: start) {
                // If the database's name is not complete before the special character, the pattern may match any name.
                let rest = literal[start.count...]
                return hasEnd(rest) ? .one(name(rest)) : .all
            }
            if start.starts(with: literal) { return .all }
        }
        return .none
    }

    /// Returns the database's name: the text up to the `__` before the first colon, or before the end of the channel.
    /// The name itself may contain underscores.
    private static func name(_ rest: Slice<UnsafeRawBufferPointer>) -> String {
        let name = rest.prefix { $0 != UInt8(ascii: ":") }
        let isEnded = name.count >= end.count && name.suffix(end.count).elementsEqual(end)
        return String(decoding: isEnded ? name.dropLast(end.count) : name, as: UTF8.self)
    }

    private static func hasEnd(_ rest: Slice<UnsafeRawBufferPointer>) -> Bool {
        // Database names contain no colon.
        guard let colon = rest.firstIndex(of: UInt8(ascii: ":")) else { return false }
        return rest[..<colon].suffix(end.count).elementsEqual(end)
    }
}
