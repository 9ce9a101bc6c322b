/// A model of the specified behaviour of FETCH, RELEASE and SET … TOKEN: one thread and one clock, without any storage.
struct FetchModel {
    struct Entry {
        var value: String
        var storedAt: Int64
        let life: Int64
        let grace: Int64

        var deadline: Int64 { storedAt + life }
    }

    struct Lease {
        /// Nil until the lease's holder has read the reply that contains the token.
        var token: String?
        let client: Int
        let endsWithClient: Bool
        let began: Int64
        let ends: Int64
    }

    enum Rest {
        case absent(until: Int64)
        case failed(until: Int64)

        var until: Int64 {
            switch self {
            case .absent(let until), .failed(let until): until
            }
        }
    }

    /// A FETCH request.
    struct Ask {
        let client: Int
        let key: String
        var maxAge: Int64?
        var wait: Int64 = 0
        var lease: Int64?
        /// The value that the client already has. In the request, the client names this value's version.
        var ifNot: String?
        let at: Int64
        /// Whether the key was written while the request waited.
        var sawWrite = false

        func isYoung(_ storedAt: Int64) -> Bool {
            guard let maxAge, !sawWrite else { return true }
            return maxAge == 0 ? storedAt > at : storedAt >= at - maxAge
        }
    }

    /// The part of a FETCH reply that is predictable.
    struct Answer: Equatable {
        var state: String
        var value: String?
        var hasVersion = false
        var age: Int64 = -1
        var ttl: Int64

        init(_ state: String, ttl: Int64) {
            self.state = state
            self.ttl = ttl
        }
    }

    struct State {
        var entry: Entry?
        var lease: Lease?
        var rest: Rest?
        /// The waiting requests, the longest wait first.
        var queue: [Ask] = []
        /// The duration of the last refresh, in milliseconds.
        var lastDuration: Int64 = 0
    }

    /// The lifetime of values that are stored without one, in milliseconds.
    static let life: Int64 = 60_000
    static let standardLease: Int64 = 30_000

    var time: Int64
    let grace: Int64
    var states: [String: State]

    init(keys: [String], time: Int64, grace: Int64) {
        self.time = time
        self.grace = grace
        states = Dictionary(uniqueKeysWithValues: keys.map { ($0, State()) })
    }

    subscript(key: String) -> State {
        get { states[key] ?? State() }
        set { states[key] = newValue }
    }

    // MARK: Time

    /// Advances the time, and removes entries, leases and back-offs that have expired.
    mutating func advance(_ milliseconds: Int64) {
        time += milliseconds
        for key in states.keys {
            if let entry = self[key].entry, time >= entry.deadline + entry.grace { self[key].entry = nil }
            if let lease = self[key].lease, time >= lease.ends { self[key].lease = nil }
            if let rest = self[key].rest, time >= rest.until { self[key].rest = nil }
        }
    }

    // MARK: FETCH

    /// Returns the reply to a FETCH; nil if it waits.
    mutating func answer(_ ask: Ask) -> Answer? {
        let entry = self[ask.key].entry
        let isYoung = entry.map { ask.isYoung($0.storedAt) } ?? false
        if let entry, isYoung, time < entry.deadline {
            if isEarly(entry, self[ask.key]) { return lead(ask) }
            guard ask.ifNot == entry.value else { return served("fresh", entry) }
            var answer = served("same", entry)
            answer.value = nil
            return answer
        }
        switch self[ask.key].rest {
        case .absent(let until): return Answer("absent", ttl: until - time)
        case .failed(let until):
            if let entry, isYoung { return served("stale", entry) }
            return Answer("failed", ttl: until - time)
        case nil: break
        }
        guard let lease = self[ask.key].lease else { return lead(ask) }
        if let entry, isYoung { return served("stale", entry) }
        return ask.at + ask.wait > time ? nil : Answer("wait", ttl: lease.ends - time)
    }

    private func isEarly(_ entry: Entry, _ state: State) -> Bool {
        let left = entry.deadline - time
        return state.lease == nil && state.rest == nil && left <= entry.life / 2
            && left <= max(entry.life / 20, 2 * state.lastDuration)
    }

    private mutating func lead(_ ask: Ask) -> Answer {
        self[ask.key].lease = Lease(
            token: nil, client: ask.client, endsWithClient: ask.lease == nil, began: time,
            ends: time + (ask.lease ?? Self.standardLease))
        return self[ask.key].entry.map { served("lead", $0) } ?? Answer("lead", ttl: 0)
    }

    private func served(_ state: String, _ entry: Entry) -> Answer {
        var answer = Answer(state, ttl: max(0, entry.deadline - time))
        answer.value = entry.value
        answer.hasVersion = true
        answer.age = time - entry.storedAt
        return answer
    }

    /// Returns the replies that waiting clients get now, starting with the client that has waited longest.
    mutating func wake() -> [(ask: Ask, answer: Answer)] {
        var answers: [(Ask, Answer)] = []
        for key in states.keys.sorted() {
            let queue = self[key].queue
            self[key].queue = []
            for ask in queue {
                if let answer = answer(ask) { answers.append((ask, answer)) } else { self[key].queue.append(ask) }
            }
        }
        return answers
    }

    // MARK: Changes

    func holds(_ key: String, _ token: String?) -> Bool { token == nil || self[key].lease?.token == token }

    mutating func store(_ key: String, _ value: String, life: Int64?, grace: Int64?, token: String? = nil) {
        self[key].entry = Entry(
            value: value, storedAt: time, life: life ?? Self.life, grace: grace ?? self.grace)
        end(key, isRefreshed: token != nil)
        noteWrite(key)
    }

    private mutating func noteWrite(_ key: String) {
        for index in self[key].queue.indices { self[key].queue[index].sawWrite = true }
    }

    mutating func remove(_ key: String) {
        self[key].entry = nil
        end(key, isRefreshed: false)
    }

    private mutating func end(_ key: String, isRefreshed: Bool) {
        if isRefreshed, let lease = self[key].lease { self[key].lastDuration = time - lease.began }
        self[key].lease = nil
        self[key].rest = nil
    }

    enum Release {
        case open, unchanged
        case absent(Int64)
        case failed(Int64)
    }

    /// Releases a lease.
    /// - Returns: the reply, in RESP.
    mutating func release(_ key: String, _ token: String, _ release: Release) -> String {
        guard holds(key, token) else { return Wire.null }
        switch release {
        case .open: self[key].lease = nil
        case .unchanged:
            guard self[key].entry != nil else {
                self[key].lease = nil
                return Wire.error("ERR UNCHANGED needs a stored value, and there is none; the lease was released")
            }
            let now = time
            self[key].entry?.storedAt = now
            end(key, isRefreshed: true)
            noteWrite(key)
        case .absent(let milliseconds):
            remove(key)
            self[key].rest = .absent(until: time + milliseconds)
        case .failed(let milliseconds):
            self[key].lease = nil
            self[key].rest = .failed(until: time + milliseconds)
        }
        return Wire.ok
    }

    mutating func disconnect(_ client: Int) {
        for key in states.keys {
            self[key].queue.removeAll { $0.client == client }
            if let lease = self[key].lease, lease.client == client, lease.endsWithClient { self[key].lease = nil }
        }
    }
}
