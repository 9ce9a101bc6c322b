/// A minimal model of one connection's keys.
///
/// Every connection has keys of its own in every database, so that the effects of its commands depend on no other
/// connection.
struct Keyspace {
    /// The time at which a command ran: a range of the engine's time, in milliseconds. The end of the range is known
    /// once the reply has arrived.
    final class Instant {
        let earliest: Int64
        var latest: Int64

        init(earliest: Int64, latest: Int64 = .max / 4) {
            self.earliest = earliest
            self.latest = latest
        }
    }

    /// When an entry stops being fresh.
    indirect enum Rule {
        /// By the database's policy.
        case governed
        /// The given number of milliseconds after an instant.
        case deadline(Instant, Int64)
        /// After PERSIST: never, unless the policy was "never" when PERSIST ran. In that case PERSIST changed nothing,
        /// and the database's policy still applies. The model does not know which case it is.
        case neverOrGoverned
        /// One of two rules: it is unknown whether the command that changes the rule ran before the accident.
        case either(Rule, Rule)
    }

    struct Entry {
        var value: [UInt8]
        var storedAt: Instant
        var rule: Rule = .governed
        var tags: [String] = []
    }

    /// A key of a database.
    struct Place: Hashable, Comparable {
        let database: String
        let key: String
        static func < (left: Place, right: Place) -> Bool {
            (left.database, left.key) < (right.database, right.key)
        }
    }

    typealias Changes = [Place: Entry?]

    private(set) var entries: [Place: Entry] = [:]

    mutating func apply(_ changes: Changes) { for (place, entry) in changes { entries[place] = entry } }

    /// Returns the changes by a list of commands as one unit. Commands that must fail change nothing.
    /// - Parameter now: when the commands run.
    func changes(by commands: [Command], now: Instant) -> Changes {
        var after = self
        var changes: Changes = [:]
        for command in commands {
            let new = after.changes(by: command, now)
            after.apply(new)
            changes.merge(new) { $1 }
        }
        return changes
    }

    private func changes(by command: Command, _ now: Instant) -> Changes {
        let place = { (key: String) in Place(database: command.database, key: key) }
        switch command.action {
        case .set(let key, let value, let rule): return [place(key): set(place(key), value, rule, now)]
        case .setTagged(let key, let value, let tags):
            return [place(key): Entry(value: value, storedAt: now, tags: tags)]
        case .setIfAbsent(let key, let value):
            return entries[place(key)] == nil ? [place(key): Entry(value: value, storedAt: now)] : [:]
        case .setMany(let pairs):
            return Dictionary(pairs.map { (place($0.0), Entry(value: $0.1, storedAt: now)) }) { $1 }
        case .append(let key, let value):
            return [place(key): changed(place(key), now) { $0 + value }]
        case .setRange(let key, let offset, let value):
            return [place(key): changed(place(key), now) { Self.replaced($0, offset, value) }]
        case .increment(let key, let number):
            return [place(key): changed(place(key), now) { Self.sum($0, number) }]
        case .delete(let keys):
            return Dictionary(keys.filter { entries[place($0)] != nil }.map { (place($0), nil) }) { $1 }
        case .expire(let key, let milliseconds):
            guard var entry = entries[place(key)] else { return [:] }
            entry.rule = .deadline(now, milliseconds)
            return [place(key): entry]
        case .persist(let key):
            guard var entry = entries[place(key)] else { return [:] }
            entry.rule = .neverOrGoverned
            return [place(key): entry]
        case .copy(let key, let other, let database):
            guard let entry = entries[place(key)] else { return [:] }
            return [Place(database: database, key: other): entry]
        case .rename(let key, let other):
            guard let entry = entries[place(key)] else { return [:] }
            return key == other ? [:] : [place(key): nil, place(other): entry]
        case .move(let key, let database):
            let target = Place(database: database, key: key)
            guard let entry = entries[place(key)], entries[target] == nil else { return [:] }
            return [place(key): nil, target: entry]
        }
    }

    private func set(_ place: Place, _ value: [UInt8], _ rule: Command.Lifetime, _ now: Instant) -> Entry {
        switch rule {
        case .governed: Entry(value: value, storedAt: now)
        case .keep:
            Entry(
                value: value, storedAt: now, rule: entries[place]?.rule ?? .governed, tags: entries[place]?.tags ?? [])
        case .until(let instant, let lead):
            Entry(
                value: value, storedAt: now,
                rule: .deadline(Instant(earliest: instant, latest: instant + lead), 0))
        case .milliseconds(let span):
            Entry(value: value, storedAt: now, rule: .deadline(now, span))
        }
    }

    private func changed(_ place: Place, _ now: Instant, _ change: ([UInt8]) -> [UInt8]) -> Entry {
        let old = entries[place]
        return Entry(
            value: change(old?.value ?? []), storedAt: now, rule: old?.rule ?? .governed, tags: old?.tags ?? [])
    }

    private static func replaced(_ value: [UInt8], _ offset: Int, _ part: [UInt8]) -> [UInt8] {
        var value = value
        let end = offset + part.count
        if value.count < end { value.append(contentsOf: repeatElement(0, count: end - value.count)) }
        value.replaceSubrange(offset..<end, with: part)
        return value
    }

    private static func sum(_ value: [UInt8], _ number: Int) -> [UInt8] {
        Array(String((Int(String(decoding: value, as: UTF8.self)) ?? 0) + number).utf8)
    }
}
