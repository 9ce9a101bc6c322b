/// The rights of a user; each level includes the previous one.
package enum AccessLevel: Int, Comparable, CaseIterable, Sendable {
    /// Read entries.
    case read = 1
    /// Store, change and remove entries.
    case write
    /// Everything.
    case administer

    package var name: String { "\(self)" }

    package init?(_ name: String) {
        guard let level = Self.allCases.first(where: { $0.name == name.lowercased() }) else { return nil }
        self = level
    }

    package static func < (left: AccessLevel, right: AccessLevel) -> Bool { left.rawValue < right.rawValue }
}

/// The right that a command needs.
package struct RequiredRight: Equatable, Sendable {
    package enum Place: Sendable {
        /// In at least one database, because the command does not concern a particular one.
        case anywhere
        /// In the selected database.
        case selected
        /// In all databases: the command is about the whole daemon.
        case everywhere
    }

    package let level: AccessLevel
    package let place: Place

    init(_ level: AccessLevel, _ place: Place) {
        self.level = level
        self.place = place
    }
}

extension CommandMetadata {
    /// The right that a call needs, in addition to the rights in databases named by its words; nil if any connected
    /// user may run it, because it affects only the connection.
    /// - Parameter count: the number of words of the call.
    package func requiredRight(count: Int) -> RequiredRight? {
        if flags.contains(.showsReadable) { return RequiredRight(.read, .anywhere) }
        if !flags.isDisjoint(with: [.admin, .administrative, .systemCommand]) {
            return RequiredRight(.administer, flags.contains(.ofSelectedDatabase) ? .selected : .everywhere)
        }
        if flags.contains(.affectsOthers) { return RequiredRight(.write, .everywhere) }
        if flags.contains(.write) {
            // Functions belong to all databases.
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
            // The subcommands of PUBSUB reveal the subscriptions of others, which may contain keys.
            return RequiredRight(.read, flags.contains(.inSubscriberMode) ? .anywhere : .everywhere)
        }
        let isOfLarder = [.string, .bitmap, .generic, .larder, .scripting].contains(group) && category != "connection"
        // Server commands that Redis allows while it loads its data do not access any data.
        let isOfMachine = group == .server && !flags.contains(.loading)
        let showsMore = flags.contains(.dangerous) || (isOfLarder || isOfMachine) && !isHelp && runsByItself
        return showsMore ? RequiredRight(.read, .anywhere) : nil
    }

    /// Whether the command only ends subscriptions.
    private var endsSubscriptions: Bool { flags.isSuperset(of: [.pubsub, .inSubscriberMode]) && arity == -1 }

    /// Whether a call has words that are channels, to subscribe or to publish to.
    package var usesChannels: Bool {
        flags.contains(.publishes) || flags.isSuperset(of: [.pubsub, .inSubscriberMode]) && !endsSubscriptions
    }

    /// The databases that a call names, with the level needed in each.
    /// - Parameter isWord: whether a word equals the given upper-case one, ignoring case.
    package func namedDatabases(
        count: Int, isWord: (Int, StaticString) -> Bool
    ) -> [(word: Int, level: AccessLevel)] {
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
