import LarderEngine

/// The entries that one durable change removes or changes: all entries of a database, or its entries with a tag.
struct Scope: Hashable, Comparable {
    let database: String
    let tag: String?

    init(_ database: String, _ tag: String? = nil) {
        self.database = database
        self.tag = tag
    }

    static func < (left: Scope, right: Scope) -> Bool {
        (left.database, left.tag ?? "") < (right.database, right.tag ?? "")
    }
}

/// An atomic request to a daemon: a command, a transaction, or a change of a whole database.
final class Unit {
    enum Outcome {
        /// The reply has not been received.
        case open
        case done
        /// Answered with an error, or known not to have happened.
        case refused
    }

    /// The connection of the unit. Units of one connection happen in order.
    let connection: Int
    /// The number of the unit among the units of its connection.
    let index: Int
    /// The number of the unit among all, in the order of the requests.
    let order: Int
    /// The driver's logical time: an event with a lower number was over before one with a higher number began.
    let sentMoment: Int
    /// The length of the trace when the request was sent.
    let sentAt: Int
    fileprivate(set) var answeredMoment = Int.max
    fileprivate(set) var answeredAt = Int.max
    fileprivate(set) var outcome = Outcome.open
    /// The length of the trace when an unknown outcome became known. `.max` while the outcome is unknown; nil if it was
    /// never unknown.
    fileprivate(set) var doubtfulUntil: Int?
    /// The changes of keys if the unit happens.
    var changes: Keyspace.Changes
    /// The databases or tags that the unit changes as a whole. Each change is durable on its own. Empty for units that
    /// use the journal.
    var scopes: Set<Scope>
    let text: String

    /// Returns true if the outcome of the refused unit was still unknown at this length of the trace.
    func isDoubtful(at traceLength: Int) -> Bool { doubtfulUntil.map { traceLength < $0 } ?? false }

    fileprivate init(
        _ connection: Int, _ index: Int, _ order: Int, _ moment: Int, _ sentAt: Int, _ changes: Keyspace.Changes,
        _ scopes: Set<Scope>, _ text: String
    ) {
        self.connection = connection
        self.index = index
        self.order = order
        sentMoment = moment
        self.sentAt = sentAt
        self.changes = changes
        self.scopes = scopes
        self.text = text
    }
}

/// The requests to a larder's daemons, and their replies.
final class History {
    /// The number of the connection that sends changes of whole databases.
    static let control = 0

    /// A change of a key. The events of a key are in the order of the units.
    struct KeyEvent {
        let unit: Unit
        let entry: Keyspace.Entry?
    }

    /// A requested value of a fact.
    struct FactEvent {
        let unit: Unit
        let value: String
    }

    private(set) var units: [[Unit]]
    private(set) var keys: [Keyspace.Place: [KeyEvent]] = [:]
    private(set) var facts: [Fact: [FactEvent]] = [:]
    let firstPolicy: UpdatePolicy
    /// The syncs. From the trace length `knownAt` on, it is known that all units answered before `moment` are on disk.
    private(set) var syncs: [(moment: Int, knownAt: Int)] = []
    /// Refused units that may have happened.
    private(set) var doubtful: [Unit] = []
    private var order = 0
    private var moment = 0

    /// - Parameter connections: the number of connections, without the connection for changes of whole databases.
    init(connections: Int, policy: UpdatePolicy) {
        units = Array(repeating: [], count: connections + 1)
        firstPolicy = policy
    }

    func nextMoment() -> Int {
        moment += 1
        return moment
    }

    /// Records a request before it is sent.
    func send(
        connection: Int, at traceLength: Int, _ changes: Keyspace.Changes = [:], whole: Set<Scope> = [], _ text: String
    ) -> Unit {
        order += 1
        let unit = Unit(
            connection, units[connection].count, order, nextMoment(), traceLength, changes, whole, text)
        units[connection].append(unit)
        for (place, entry) in changes { keys[place, default: []].append(KeyEvent(unit: unit, entry: entry)) }
        return unit
    }

    func note(_ fact: Fact, _ value: String, by unit: Unit) {
        facts[fact, default: []].append(FactEvent(unit: unit, value: value))
    }

    /// Returns the fact that a unit changes, if any.
    func fact(by unit: Unit) -> (fact: Fact, value: String)? {
        for (fact, events) in facts {
            if let event = events.last(where: { $0.unit === unit }) { return (fact, event.value) }
        }
        return nil
    }

    func firstValue(of fact: Fact) -> String {
        if case .policy = fact { firstPolicy.description } else { Fact.none }
    }

    /// Returns the value of a fact after all units that were not refused.
    func value(of fact: Fact) -> String {
        facts[fact]?.last { $0.unit.outcome != .refused }?.value ?? firstValue(of: fact)
    }

    /// - Parameter isKnown: false if the error says that the refused unit may still take effect until the next unit is
    ///   committed.
    func answer(_ unit: Unit, done: Bool, isKnown: Bool = true, at traceLength: Int) {
        unit.answeredMoment = nextMoment()
        unit.answeredAt = traceLength
        unit.outcome = done ? .done : .refused
        if !isKnown {
            unit.doubtfulUntil = .max
            doubtful.append(unit)
        } else if done {
            doubtful.removeAll { previous in
                // Changes of whole databases do not use the journal, so after such a change, an earlier refused write
                // may still take effect.
                let isWrite = unit.connection != Self.control && !unit.changes.isEmpty
                let isEarlier = previous.scopes.isEmpty && previous.answeredMoment < unit.sentMoment
                let isSettled = previous === unit || isWrite && isEarlier
                if isSettled { previous.doubtfulUntil = traceLength }
                return isSettled
            }
        }
    }

    /// Records whether a refused change of a whole database or tag has happened.
    func settle(_ unit: Unit, happened: Bool, at traceLength: Int) {
        doubtful.removeAll { $0 === unit }
        unit.doubtfulUntil = traceLength
        answer(unit, done: happened, at: traceLength)
    }

    /// Limits a change of several databases to the databases in which it happened.
    func narrow(_ unit: Unit, to scopes: Set<Scope>) {
        for place in unit.changes.keys where !scopes.contains(where: { $0.database == place.database }) {
            unit.changes[place] = nil
            keys[place]?.removeAll { $0.unit === unit }
        }
        unit.scopes = scopes
    }

    /// Treats an unanswered unit as done although the found state does not prove it. If the unit would change only the
    /// lifetime of an entry, both lifetimes are accepted.
    func doubt(_ unit: Unit) {
        for case (let place, var entry?) in unit.changes {
            guard let events = keys[place], let index = events.firstIndex(where: { $0.unit === unit }),
                let previous = events[..<index].last(where: { $0.unit.outcome != .refused })?.entry,
                previous.value == entry.value
            else { continue }
            entry.rule = .either(previous.rule, entry.rule)
            unit.changes[place] = entry
            keys[place]?[index] = KeyEvent(unit: unit, entry: entry)
        }
    }

    /// Whether the found state proves that a unit with an unknown outcome has happened.
    /// - Parameter counts: the number of units that happened, by connection.
    func isSeen(_ unit: Unit, _ counts: [Int], _ found: FoundState) -> Bool {
        guard unit.index < counts[unit.connection] else { return false }
        return unit.changes.contains { place, entry in
            let counting = (keys[place] ?? []).filter { event in
                event.unit === unit || event.unit.outcome == .done
                    || event.unit.outcome == .open && event.unit.index < counts[event.unit.connection]
            }
            guard counting.last?.unit === unit else { return false }
            let previous = counting.dropLast().last?.entry?.value
            return previous != entry?.value && found.databases[place.database]?.entries[place.key] == entry?.value
        }
    }

    /// Records that all units that were answered before a moment are on disk.
    func noteSync(of moment: Int, at traceLength: Int) { syncs.append((moment, traceLength)) }

    /// Returns the contents of a connection's keys after all units that were not refused.
    func keyspace(of connection: Int) -> Keyspace {
        var keyspace = Keyspace()
        let own = "\(Driver.prefix(of: connection)):"
        let all = (units[connection] + units[Self.control]).sorted { $0.order < $1.order }
        for unit in all where unit.outcome != .refused {
            keyspace.apply(unit.changes.filter { $0.key.key.hasPrefix(own) })
        }
        return keyspace
    }
}
