import LarderEngine

/// The state found in a larder.
struct FoundState {
    struct Database {
        var policy: UpdatePolicy
        var entries: [String: [UInt8]] = [:]
    }

    var databases: [String: Database] = [:]
    /// The facts other than policies, which are in ``databases``.
    var facts: [Fact: String] = [:]
    /// The range of the engine's time during the check, in milliseconds.
    var now: ClosedRange<Int64>
    /// The engine's latest time before the check: entries that had expired by that time may be missing, whatever the
    /// clock shows now.
    var latest: Int64

    var allFacts: [Fact: String] {
        facts.merging(databases.map { (.policy($0.key), $0.value.policy.description) }) { $1 }
    }
}

/// Decides whether the durability guarantees allow the state found after an accident.
struct Judge {
    let history: History
    let durability: Durability

    /// The number of units of each connection that happened, and the databases to which the unanswered change of whole
    /// databases was applied.
    struct Explanation {
        var counts: [Int]
        var whole: Set<Scope>
    }

    enum Verdict {
        case promised(Explanation)
        case broken(String)
    }

    /// - Parameters:
    ///   - cut: the length of the trace at the accident.
    ///   - power: whether the accident was a power failure.
    func judge(_ found: FoundState, cut: Int, power: Bool) -> Verdict {
        if let text = factDefect(found, cut) { return .broken(text) }
        if let text = strangers(found) { return .broken(text) }
        let windows = history.units.indices.map { window($0, cut, power: power) }
        // Changes of whole databases do not use the journal, so an open change may have happened in some databases
        // only.
        let open = history.units[History.control].filter {
            !$0.scopes.isEmpty && $0.sentAt <= cut && ($0.answeredAt > cut || $0.isDoubtful(at: cut))
        }
        let affected = open.reduce(into: Set<Scope>()) { $0.formUnion($1.scopes) }.sorted()
        var trials: [Trial] = []
        for choice in (0..<(1 << affected.count)).reversed() {
            let whole = Set(affected.indices.filter { choice >> $0 & 1 == 1 }.map { affected[$0] })
            for count in windows[0].reversed() {
                let trial = Trial(
                    history: history, found: found, cut: cut, windows: windows, controlCount: count, whole: whole)
                if let counts = trial.counts() { return .promised(Explanation(counts: counts, whole: whole)) }
                trials.append(trial)
            }
        }
        let reasons = trials.map { $0.explanation() }
        return .broken(reasons.min { $0.mismatches < $1.mismatches }?.text ?? "")
    }

    /// The minimum and maximum number of a connection's units that happened.
    private func window(_ connection: Int, _ cut: Int, power: Bool) -> ClosedRange<Int> {
        let units = history.units[connection]
        let most = units.partitioningIndex { $0.sentAt > cut }
        var least = 0
        if !power || durability == .always {
            least = (units[..<most].lastIndex { $0.answeredAt <= cut }).map { $0 + 1 } ?? 0
        } else if let moment = history.syncs.last(where: { $0.knownAt <= cut })?.moment {
            least = (units[..<most].lastIndex { $0.answeredMoment < moment }).map { $0 + 1 } ?? 0
        }
        // A refused unit need not have happened, even if its outcome is unknown.
        for unit in units[..<least].reversed() {
            if unit.isDoubtful(at: cut) { least = unit.index } else if unit.outcome != .refused { break }
        }
        return least...max(least, most)
    }

    /// Checks that a fact has its last acknowledged value, or a later one that was requested and not acknowledged.
    private func factDefect(_ found: FoundState, _ cut: Int) -> String? {
        for (fact, value) in found.allFacts {
            var possible = [history.firstValue(of: fact)]
            for event in history.facts[fact] ?? [] where event.unit.sentAt <= cut {
                if event.unit.answeredAt > cut || event.unit.isDoubtful(at: cut) {
                    possible.append(event.value)
                } else if event.unit.outcome == .done {
                    possible = [event.value]
                }
            }
            guard possible.contains(value) else { return "\(fact) is '\(value)', not one of \(possible)" }
        }
        return nil
    }

    static func text(_ value: [UInt8]?) -> String {
        guard let value else { return "nothing" }
        let text = value.prefix(12).map { (0x20..<0x7F).contains($0) ? String(UnicodeScalar($0)) : "." }.joined()
        return "'\(text)' (\(value.count))"
    }

    private func strangers(_ found: FoundState) -> String? {
        for (name, database) in found.databases {
            // Keys with the prefix "z:" are only written to probe the daemon or the engine. They belong to no
            // connection.
            for key in database.entries.keys
            where !key.hasPrefix("z:") && history.keys[.init(database: name, key: key)] == nil {
                return "database '\(name)' has the key '\(key)', which was never written"
            }
        }
        return nil
    }
}

/// A hypothesis: `controlCount` units of the control connection happened, and the unanswered change of whole databases
/// was applied to the scopes in `whole`.
private struct Trial {
    let history: History
    let found: FoundState
    let cut: Int
    let windows: [ClosedRange<Int>]
    let controlCount: Int
    let whole: Set<Scope>
    /// For each database, the last changes that removed all its entries or all entries with a tag.
    private let changed: [String: Removed]

    /// Removals that hold even if the journal has lost its end.
    private struct Removed {
        /// The order of the unit that last removed all entries; 0 if there is none.
        var everything = 0
        /// The order of the unit that last purged each tag.
        var tags: [String: Int] = [:]

        /// Returns what remains of an entry that a unit stored.
        func left(of event: History.KeyEvent) -> Keyspace.Entry? {
            guard let entry = event.entry else { return nil }
            return entry.tags.contains { event.unit.order <= tags[$0] ?? 0 } ? nil : entry
        }
    }
    /// For each connection, and for each possible number of its units that have happened: whether the keys of the
    /// connection would be as they were found.
    private let fits: [[Bool]]

    init(
        history: History, found: FoundState, cut: Int, windows: [ClosedRange<Int>], controlCount: Int,
        whole: Set<Scope>
    ) {
        (self.history, self.found, self.cut) = (history, found, cut)
        (self.windows, self.controlCount, self.whole) = (windows, controlCount, whole)
        var changed: [String: Removed] = [:]
        for unit in history.units[History.control] where unit.sentAt <= cut {
            let isAnswered = unit.answeredAt <= cut && !unit.isDoubtful(at: cut)
            for scope in unit.scopes where isAnswered ? unit.outcome != .refused : whole.contains(scope) {
                if let tag = scope.tag {
                    changed[scope.database, default: Removed()].tags[tag] = unit.order
                } else {
                    changed[scope.database, default: Removed()].everything = unit.order
                }
            }
        }
        self.changed = changed
        var fits = windows.map { Array(repeating: true, count: $0.count) }
        for (place, events) in history.keys {
            guard let connection = Driver.connection(of: place.key) else { continue }
            let value = found.databases[place.database]?.entries[place.key]
            for (slot, count) in windows[connection].enumerated() where fits[connection][slot] {
                fits[connection][slot] = [true, false].contains { countsDoubtful in
                    let entry = Self.entry(
                        events, count, controlCount, changed[place.database] ?? Removed(), cut,
                        countsDoubtful: countsDoubtful)
                    return Self.agrees(entry, value, events, found, place.database, history)
                }
            }
        }
        self.fits = fits
    }

    /// The contents of a key after the given number of units of its connection.
    /// - Parameter countsDoubtful: whether units with an unknown outcome have happened.
    private static func entry(
        _ events: [History.KeyEvent], _ count: Int, _ controlCount: Int, _ changed: Removed, _ cut: Int,
        countsDoubtful: Bool = false
    ) -> Keyspace.Entry? {
        for event in events.reversed() {
            let unit = event.unit
            guard unit.sentAt <= cut else { continue }
            let isAnswered = unit.answeredAt <= cut
            let isRefused = unit.isDoubtful(at: cut) ? !countsDoubtful : unit.outcome == .refused
            if isRefused, isAnswered { continue }
            // Entries that were stored before the last change of the whole database are removed, even if the journal
            // has lost its end.
            if unit.order <= changed.everything { return nil }
            if unit.connection == History.control {
                if unit.scopes.isEmpty, unit.index < controlCount { return changed.left(of: event) }
                continue
            }
            guard unit.index < count else { continue }
            // If a unit's failure was reported only after the accident, the unit may have happened. In that case, it is
            // the last unit of its connection.
            if isRefused, unit.index != count - 1 { continue }
            return changed.left(of: event)
        }
        return nil
    }

    private static func agrees(
        _ entry: Keyspace.Entry?, _ value: [UInt8]?, _ events: [History.KeyEvent], _ found: FoundState,
        _ database: String, _ history: History
    ) -> Bool {
        let policy = found.databases[database]?.policy ?? history.firstPolicy
        guard let entry else {
            // DEL does not remove expired entries. They may be fresh again if the larder's time has gone back.
            return value == nil
                || events.contains { event in
                    guard let previous = event.entry, previous.value == value else { return false }
                    let deadline = Self.deadline(previous, policy)
                    return deadline.lowerBound <= found.latest && deadline.upperBound > found.now.lowerBound
                }
        }
        let deadline = deadline(entry, policy)
        guard let value else { return deadline.lowerBound <= max(found.now.upperBound, found.latest) }
        return value == entry.value && deadline.upperBound > found.now.lowerBound
    }

    /// The earliest and latest time at which the entry may stop being fresh, in milliseconds.
    private static func deadline(_ entry: Keyspace.Entry, _ policy: UpdatePolicy) -> ClosedRange<Int64> {
        deadline(entry, entry.rule, policy)
    }

    private static func deadline(
        _ entry: Keyspace.Entry, _ rule: Keyspace.Rule, _ policy: UpdatePolicy
    ) -> ClosedRange<Int64> {
        let least = entry.storedAt.earliest
        switch (rule, policy.intervalMilliseconds) {
        case (.either(let one, let other), _):
            let (one, other) = (deadline(entry, one, policy), deadline(entry, other, policy))
            return min(one.lowerBound, other.lowerBound)...max(one.upperBound, other.upperBound)
        case (.deadline(let instant, let span), _): return (instant.earliest + span)...(instant.latest + span)
        case (_, nil): return Int64.max...Int64.max
        case (.governed, let interval?): return (least + interval)...(entry.storedAt.latest + interval)
        // If the policy was "never" when PERSIST ran, PERSIST changed nothing, and the entry follows later policies.
        case (.neverOrGoverned, let interval?): return (least + interval)...Int64.max
        }
    }

    /// Returns the number of units of each connection that happened; nil if no numbers agree with the found state.
    ///
    /// If a unit has happened, all units that were answered before that unit was requested have happened too.
    func counts() -> [Int]? {
        var moments: Set<Int> = [Int.min]
        for (connection, window) in windows.enumerated() {
            for unit in history.units[connection].prefix(window.upperBound) where unit.index + 1 >= window.lowerBound {
                moments.insert(unit.sentMoment)
            }
        }
        for moment in moments.sorted(by: >) {
            let counts = windows.indices.map { count($0, last: moment) }
            if !counts.contains(nil) { return counts.compactMap { $0 } }
        }
        return nil
    }

    /// Returns the largest number of a connection's units that agrees with the found state; nil if no number agrees.
    /// Assumes that no unit sent after `moment` has happened.
    private func count(_ connection: Int, last moment: Int) -> Int? {
        let units = history.units[connection]
        let window = windows[connection]
        var least = window.lowerBound
        while least < window.upperBound, units[least].answeredMoment < moment, !units[least].isDoubtful(at: cut) {
            least += 1
        }
        var most = window.upperBound
        while most > window.lowerBound, units[most - 1].sentMoment > moment { most -= 1 }
        guard least <= most else { return nil }
        if connection == History.control { return (least...most).contains(controlCount) ? controlCount : nil }
        return (least...most).reversed().first { fits[connection][$0 - window.lowerBound] }
    }

    /// Returns the minimum number of keys that do not agree with the found state, and a text that lists them, for
    /// messages.
    func explanation() -> (mismatches: Int, text: String) {
        var lines: [String] = []
        var mismatches = 0
        for connection in windows.indices.dropFirst() {
            let window = windows[connection]
            var least = Int.max
            for count in window {
                let wrong = history.keys.sorted { $0.key < $1.key }.filter { place, events in
                    Driver.connection(of: place.key) == connection
                        && !Self.agrees(
                            Self.entry(events, count, controlCount, changed[place.database] ?? Removed(), cut),
                            found.databases[place.database]?.entries[place.key], events, found, place.database,
                            history)
                }
                let shown = wrong.prefix(4).map { place, events in
                    let value = found.databases[place.database]?.entries[place.key]
                    let entry = Self.entry(events, count, controlCount, changed[place.database] ?? Removed(), cut)
                    return "\(place.database) \(place.key) is \(Judge.text(value)), not \(Judge.text(entry?.value))"
                        + (entry.map {
                            ", fresh until \(Self.deadline($0, found.databases[place.database]?.policy ?? .never))"
                        } ?? "")
                }
                guard wrong.count < least else { continue }
                mismatches += wrong.count - (least == .max ? 0 : least)
                least = wrong.count
                lines.append(
                    "  connection \(connection), \(count) of \(window): \(wrong.count) keys: "
                        + shown.joined(separator: "; "))
            }
        }
        let policies = found.databases.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value.policy)" }
        let head =
            "at \(found.now), before at most \(found.latest), \(policies), with \(controlCount) of \(windows[0])"
            + " control units and changes of \(whole.sorted()):\n"
        return (mismatches, head + lines.joined(separator: "\n"))
    }
}
