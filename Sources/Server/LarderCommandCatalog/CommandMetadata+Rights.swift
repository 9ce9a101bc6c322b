/// The levels of rights that a user can have. Each level includes the lower ones.
package enum AccessLevel: Int, Comparable, CaseIterable, Sendable {
    /// The user may read entries.
    case read = 1
    /// The user may also store, change and remove entries.
    case write
    /// The user may run all commands.
    case administer

    package var name: String { "\(self)" }

    package init?(_ name: String) {
        guard let level = Self.allCases.first(where: { $0.name == name.lowercased() }) else { return nil }
        self = level
    }

    package static func < (left: AccessLevel, right: AccessLevel) -> Bool { left.rawValue < right.rawValue }
}

/// The level of rights that a command needs, and the databases in which the user must have this level.
package struct RequiredRight: Equatable, Sendable {
    package enum Place: Sendable {
        /// The user needs the level in at least one database: the command does not belong to a particular database.
        case anywhere
        /// The user needs the level in the selected database.
        case selected
        /// The user needs the level in all databases: the command concerns the whole daemon.
        case everywhere
    }

    package let level: AccessLevel
    package let place: Place

    init(_ level: AccessLevel, _ place: Place) { (self.level, self.place) = (level, place) }
}

extension CommandMetadata {
    /// Returns the right that a call needs. If the call names databases, the user may also need rights in these: see
    /// ``namedDatabases(count:isWord:)``.
    /// - Parameter count: the number of the call's words.
    /// - Returns: nil if the call affects only the connection. Every connected user may run such a call.
    package func requiredRight(count: Int) -> RequiredRight? {
        if flags.contains(.showsReadable) { return RequiredRight(.read, .anywhere) }
        if !flags.isDisjoint(with: [.admin, .administrative, .systemCommand]) {
            return RequiredRight(.administer, flags.contains(.ofSelectedDatabase) ? .selected : .everywhere)
        }
        if flags.contains(.affectsOthers) { return RequiredRight(.write, .everywhere) }
        if flags.contains(.write) {
            // Functions do not belong to a single database.
            let isOfAll = database == .all || group == .scripting
            return RequiredRight(.write, isOfAll ? .everywhere : database.namesAll ? .anywhere : .selected)
        }
        if flags.contains(.runsScript) { return RequiredRight(.read, .selected) }
        if !flags.isDisjoint(with: [.readonly, .opens]) {
            let changes = keys.first > 0 && access.joined().contains("RW")
            let writes = changes || flags.contains(.writesWithArguments) && count > 1
            return RequiredRight(writes ? .write : .read, .selected)
        }
        if flags.contains(.publishes) { return RequiredRight(.write, .anywhere) }
        if flags.contains(.pubsub) {
            if endsSubscriptions { return nil }
            // PUBSUB shows the channels of other clients, and names of channels may contain keys of any database.
            return RequiredRight(.read, flags.contains(.inSubscriberMode) ? .anywhere : .everywhere)
        }
        let isOfLarder = [.string, .bitmap, .generic, .larder, .scripting].contains(group) && category != "connection"
        // A server command shows nothing about the data if it can run while Redis loads the data.
        let isOfMachine = group == .server && !flags.contains(.loading)
        let showsMore = flags.contains(.dangerous) || (isOfLarder || isOfMachine) && !isHelp && runsByItself
        return showsMore ? RequiredRight(.read, .anywhere) : nil
    }

    /// Whether the command only ends subscriptions.
    private var endsSubscriptions: Bool { flags.isSuperset(of: [.pubsub, .inSubscriberMode]) && arity == -1 }

    /// Whether some words of a call are channels, to which the client subscribes or publishes.
    package var usesChannels: Bool {
        flags.contains(.publishes) || flags.isSuperset(of: [.pubsub, .inSubscriberMode]) && !endsSubscriptions
    }

    /// Returns the positions of the words that name databases, each with the level that the user needs in that
    /// database.
    /// - Parameter isWord: compares a word of the call with a word in capitals, ignoring case.
    package func namedDatabases(count: Int, isWord: (Int, StaticString) -> Bool) -> [(word: Int, level: AccessLevel)] {
        switch database {
        case .none, .all: return []
        case .selected: return count > 1 ? [(1, .read)] : []
        case .target(let name, _): return count > name ? [(name, .write)] : []
        case .both: return (1..<min(3, max(1, count))).map { ($0, .write) }
        case .targetOption(let key):
            var named: [(Int, AccessLevel)] = []
            var index = key + 1
            while index < count {
                if isWord(index, "DB"), index + 1 < count {
                    index += 1
                    named.append((index, .write))
                }
                index += 1
            }
            return named
        }
    }
}
