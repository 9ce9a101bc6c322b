/// A model of the specified behaviour of commands on entries: dictionaries and one clock, without any storage.
struct EntryModel {
    enum Rule: Equatable {
        case governed, never
        case own(Int64)
    }

    struct Entry {
        var value: String
        var storedAt: Int64
        var rule = Rule.governed
        var grace: Int64?
        var codec = "raw"
        var tags: [String] = []
        /// The time of the last soft purge of each of its tags, by tag.
        var softEnds: [String: Int64] = [:]
    }

    enum State: String {
        case fresh, stale, gone
    }

    struct Lease {
        let token: String
        let began: Int64
        let ends: Int64
        /// The tags that the key's entry had when the lease was granted.
        let tags: [String]
        /// The tags that were purged since the lease was granted.
        var purged: Set<String> = []
    }

    typealias Rest = FetchModel.Rest

    struct Database {
        var interval: Int64?
        let grace: Int64
        /// Entries that follow the policy and were stored at this time or earlier have expired under an
        /// earlier policy, and stay expired.
        var deadBefore: Int64 = 0
        var entries: [String: Entry] = [:]
        /// The leases by key. An expired lease stays until the key is next used.
        var leases: [String: Lease] = [:]
        var rests: [String: Rest] = [:]
        /// The duration of the last refresh of each key, in milliseconds.
        var durations: [String: Int64] = [:]
    }

    static let standardLease: Int64 = 30_000

    var time: Int64
    var databases: [Database]

    // MARK: Lives

    func deadline(_ entry: Entry, _ database: Int) -> Int64? {
        let database = databases[database]
        let own: Int64?
        switch entry.rule {
        case .never: own = nil
        case .own(let deadline): own = deadline
        case .governed:
            own =
                entry.storedAt <= database.deadBefore
                ? entry.storedAt : database.interval.map { entry.storedAt + $0 }
        }
        return [own, entry.softEnds.values.min()].compactMap { $0 }.min()
    }

    func state(_ entry: Entry, _ database: Int) -> State {
        guard let deadline = deadline(entry, database), time >= deadline || !entry.softEnds.isEmpty else {
            return .fresh
        }
        return time < deadline + (entry.grace ?? databases[database].grace) ? .stale : .gone
    }

    /// Returns the entry of a key if it is fresh or stale; otherwise nil.
    func kept(_ database: Int, _ key: String) -> Entry? {
        databases[database].entries[key].flatMap { state($0, database) == .gone ? nil : $0 }
    }

    func fresh(_ database: Int, _ key: String) -> Entry? {
        databases[database].entries[key].flatMap { state($0, database) == .fresh ? $0 : nil }
    }

    /// Returns the deadline rule of an entry whose lifetime starts again.
    func renewed(_ entry: Entry) -> Rule {
        guard case .own(let deadline) = entry.rule else { return entry.rule }
        return .own(time + max(1, deadline - entry.storedAt))
    }

    // MARK: Changes

    mutating func store(_ database: Int, _ key: String, _ entry: Entry, isRefresh: Bool = false) {
        endLease(database, key, isRefresh: isRefresh)
        databases[database].entries[key] = entry
    }

    mutating func remove(_ database: Int, _ key: String, isRefresh: Bool = false) {
        endLease(database, key, isRefresh: isRefresh)
        databases[database].entries[key] = nil
    }

    private mutating func endLease(_ database: Int, _ key: String, isRefresh: Bool) {
        if let lease = databases[database].leases.removeValue(forKey: key), isRefresh {
            databases[database].durations[key] = time - lease.began
        }
        databases[database].rests[key] = nil
    }

    /// Changes a value in place, keeping the entry's lifetime, grace, codec and tags.
    mutating func change(_ database: Int, _ key: String, to value: String) {
        var entry = fresh(database, key) ?? Entry(value: value, storedAt: time)
        entry.value = value
        entry.storedAt = time
        store(database, key, entry)
    }

    /// Stores the entry of another key or database under a key.
    mutating func place(_ database: Int, _ key: String, _ entry: Entry) {
        var entry = entry
        let target = databases[database]
        if entry.rule == .governed, entry.storedAt <= target.deadBefore {
            if let interval = target.interval {
                entry.rule = .own(entry.storedAt + interval)
            } else {
                entry.storedAt = target.deadBefore + 1
            }
        }
        store(database, key, entry)
    }

    mutating func setPolicy(_ database: Int, _ interval: Int64?) {
        if let old = databases[database].interval, old != interval {
            databases[database].deadBefore = max(databases[database].deadBefore, time - old)
        }
        databases[database].interval = interval
    }

    mutating func empty(_ database: Int) {
        databases[database].entries = [:]
        databases[database].leases = [:]
        databases[database].rests = [:]
        databases[database].deadBefore = 0
    }

    mutating func purge(_ database: Int, tags: Set<String>, soft: Bool) {
        for (key, entry) in databases[database].entries where !tags.isDisjoint(with: entry.tags) {
            guard soft else {
                databases[database].entries[key] = nil
                continue
            }
            for tag in entry.tags where tags.contains(tag) { databases[database].entries[key]?.softEnds[tag] = time }
        }
        for (key, lease) in databases[database].leases {
            if tags.isDisjoint(with: lease.tags) {
                databases[database].leases[key]?.purged.formUnion(tags)
            } else {
                databases[database].leases[key] = nil
            }
        }
        for (key, rest) in databases[database].rests {
            if case .absent = rest { databases[database].rests[key] = nil }
        }
    }

    /// Applies a restart of the engine.
    mutating func restart() {
        for index in databases.indices {
            databases[index].leases = [:]
            databases[index].rests = [:]
            databases[index].durations = [:]
        }
    }

    // MARK: Leases

    /// Returns whether a token is valid for a value with the given tags. If a tag was purged after the lease was
    /// granted, ends the lease.
    mutating func holds(_ database: Int, _ key: String, _ token: String, tags: [String]) -> Bool {
        guard let lease = databases[database].leases[key], time < lease.ends, lease.token == token else { return false }
        if lease.purged.isDisjoint(with: tags) { return true }
        databases[database].leases[key] = nil
        return false
    }

    mutating func holdsForAbsence(_ database: Int, _ key: String, _ token: String) -> Bool {
        holds(database, key, token, tags: databases[database].leases[key].map { Array($0.purged) } ?? [])
    }

    enum Answer: Equatable {
        /// The state, the value, its age, and its remaining lifetime; times are in milliseconds.
        case served(String, String, Int64, Int64)
        case none(String, Int64)
    }

    /// Returns the reply to a FETCH that does not wait.
    func fetch(_ database: Int, _ key: String, maxAge: Int64?) -> Answer {
        let entry = kept(database, key)
        func serve(_ state: String, _ entry: Entry) -> Answer {
            // An entry without a deadline has an endless remaining lifetime, which is shown as -1.
            let left = deadline(entry, database).map { max(0, $0 - time) } ?? -1
            return .served(state, entry.value, time - entry.storedAt, left)
        }
        let isYoung = entry.map { entry in
            maxAge.map { $0 == 0 ? entry.storedAt > time : entry.storedAt >= time - $0 } ?? true
        }
        let lease = databases[database].leases[key].flatMap { time < $0.ends ? $0 : nil }
        let rest = databases[database].rests[key].flatMap { time < $0.until ? $0 : nil }
        if let entry, isYoung == true, state(entry, database) == .fresh {
            let isEarly = lease == nil && rest == nil && endsSoon(entry, database, key)
            return serve(isEarly ? "lead" : "fresh", entry)
        }
        switch rest {
        case .absent(let until): return .none("absent", until - time)
        case .failed(let until):
            if let entry, isYoung == true { return serve("stale", entry) }
            return .none("failed", until - time)
        case nil: break
        }
        if let lease {
            if let entry, isYoung == true { return serve("stale", entry) }
            return .none("wait", lease.ends - time)
        }
        return entry.map { serve("lead", $0) } ?? .none("lead", 0)
    }

    private func endsSoon(_ entry: Entry, _ database: Int, _ key: String) -> Bool {
        guard let deadline = deadline(entry, database) else { return false }
        let (life, left) = (deadline - entry.storedAt, deadline - time)
        return left <= life / 2
            && (left <= life / 20 || left <= 2 * (databases[database].durations[key] ?? 0))
    }

    mutating func grant(_ database: Int, _ key: String, _ token: String, milliseconds: Int64?) {
        databases[database].leases[key] = Lease(
            token: token, began: time, ends: time + (milliseconds ?? Self.standardLease),
            tags: kept(database, key)?.tags ?? [])
    }
}
