import LarderEngine

/// What is changed as a whole: a database, or its entries with a tag.
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

/// One thing that was asked of a daemon and is there as a whole or not at all: a command, a transaction, a change of a
/// whole database.
final class Unit {
    enum Outcome {
        /// Nobody has said.
        case open
        case done
        /// It was answered with an error, or is known not to have happened.
        case refused
    }

    /// Who asked. Units of one connection happen in their order.
    let connection: Int
    /// Its number among those of its connection.
    let index: Int
    /// Its number among all, in the order in which they were asked for.
    let order: Int
    /// Moments of the driver: of two things the one with the lower number was over before the other began.
    let sentMoment: Int
    /// How long the trace was.
    let sentAt: Int
    fileprivate(set) var answeredMoment = Int.max
    fileprivate(set) var answeredAt = Int.max
    fileprivate(set) var outcome = Outcome.open
    /// How long the trace was when it was known whether it counts, where it was answered that this is not known.
    fileprivate(set) var doubtfulUntil: Int?
    /// What it makes of keys where it happens.
    var changes: Keyspace.Changes
    /// What it changes as a whole, durably by itself, each for itself; empty for what goes by the journal.
    var scopes: Set<Scope>
    let text: String

    /// Whether nobody could know at a moment if what was refused counts all the same.
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

/// What was asked of a larder's daemons, and what they said.
final class History {
    /// The connection whose units are changes of whole databases.
    static let control = 0

    /// What happened to a key, in the order of the units.
    struct KeyEvent {
        let unit: Unit
        let entry: Keyspace.Entry?
    }

    /// A value of a fact that was asked for.
    struct FactEvent {
        let unit: Unit
        let value: String
    }

    private(set) var units: [[Unit]]
    private(set) var keys: [Keyspace.Place: [KeyEvent]] = [:]
    private(set) var facts: [Fact: [FactEvent]] = [:]
    let firstPolicy: UpdatePolicy
    /// By which moment everything answered was on the disk, and how long the trace was when that was known.
    private(set) var syncs: [(moment: Int, knownAt: Int)] = []
    /// Refused, and nobody knows whether they count.
    private(set) var doubtful: [Unit] = []
    private var order = 0
    private var moment = 0

    /// - Parameter connections: besides that of the changes of whole databases.
    init(connections: Int, policy: UpdatePolicy) {
        units = Array(repeating: [], count: connections + 1)
        firstPolicy = policy
    }

    func nextMoment() -> Int {
        moment += 1
        return moment
    }

    /// Something is about to be asked for.
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

    /// The fact that a unit changes, if it does.
    func fact(by unit: Unit) -> (fact: Fact, value: String)? {
        for (fact, events) in facts {
            if let event = events.last(where: { $0.unit === unit }) { return (fact, event.value) }
        }
        return nil
    }

    func firstValue(of fact: Fact) -> String {
        if case .policy = fact { firstPolicy.description } else { Fact.none }
    }

    /// The value of a fact by what was not refused.
    func value(of fact: Fact) -> String {
        facts[fact]?.last { $0.unit.outcome != .refused }?.value ?? firstValue(of: fact)
    }

    /// - Parameter isKnown: false where an error says that the unit may count all the same, until another is committed.
    func answer(_ unit: Unit, done: Bool, isKnown: Bool = true, at traceLength: Int) {
        unit.answeredMoment = nextMoment()
        unit.answeredAt = traceLength
        unit.outcome = done ? .done : .refused
        if !isKnown {
            unit.doubtfulUntil = .max
            doubtful.append(unit)
        } else if done {
            doubtful.removeAll { former in
                // What changes a whole database does not go by the journal.
                let isWrite = unit.connection != Self.control && !unit.changes.isEmpty
                let isEarlier = former.scopes.isEmpty && former.answeredMoment < unit.sentMoment
                let isSettled = former === unit || isWrite && isEarlier
                if isSettled { former.doubtfulUntil = traceLength }
                return isSettled
            }
        }
    }

    /// It is known now whether a change of a whole counts that was refused.
    func settle(_ unit: Unit, happened: Bool, at traceLength: Int) {
        doubtful.removeAll { $0 === unit }
        unit.doubtfulUntil = traceLength
        answer(unit, done: happened, at: traceLength)
    }

    /// Of a change of wholes only this part happened. Each of its databases has one part.
    func narrow(_ unit: Unit, to scopes: Set<Scope>) {
        for place in unit.changes.keys where !scopes.contains(where: { $0.database == place.database }) {
            unit.changes[place] = nil
            keys[place]?.removeAll { $0.unit === unit }
        }
        unit.scopes = scopes
    }

    /// A unit that nobody answered counts as done, and what was found does not tell: where only the life of an entry would be
    /// another, it may be either.
    func doubt(_ unit: Unit) {
        for case (let place, var entry?) in unit.changes {
            guard let events = keys[place], let index = events.firstIndex(where: { $0.unit === unit }),
                let former = events[..<index].last(where: { $0.unit.outcome != .refused })?.entry,
                former.value == entry.value
            else { continue }
            entry.rule = .either(former.rule, entry.rule)
            unit.changes[place] = entry
            keys[place]?[index] = KeyEvent(unit: unit, entry: entry)
        }
    }

    /// Whether what was found can only be there because a unit happened of which nobody knew if it counts.
    /// - Parameter counts: of each connection, how many units happened.
    func isSeen(_ unit: Unit, _ counts: [Int], _ found: FoundState) -> Bool {
        guard unit.index < counts[unit.connection] else { return false }
        return unit.changes.contains { place, entry in
            let counting = (keys[place] ?? []).filter { event in
                event.unit === unit || event.unit.outcome == .done
                    || event.unit.outcome == .open && event.unit.index < counts[event.unit.connection]
            }
            guard counting.last?.unit === unit else { return false }
            let former = counting.dropLast().last?.entry?.value
            return former != entry?.value && found.databases[place.database]?.entries[place.key] == entry?.value
        }
    }

    /// Everything that was answered before a moment is on the disk, as is known now.
    func noteSync(of moment: Int, at traceLength: Int) { syncs.append((moment, traceLength)) }

    /// What a connection's keys hold by what was not refused.
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
