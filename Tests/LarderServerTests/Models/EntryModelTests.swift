import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderServer

/// Runs random commands on entries in several databases, with all their options, and compares the results with
/// ``EntryModel``.
@Suite(.timeLimit(.minutes(10))) struct EntryModelTests {
    /// For a long run overnight: `LARDER_ROUNDS=10000 LARDER_SEED=… swift test --filter EntryModelTests`.
    @Test func randomCommandsAgreeWithTheModel() throws {
        let rounds = TestSetting.rounds.number() ?? 24
        let base = testSeed()
        for round in 0..<rounds {
            let seed = base &+ UInt64(truncatingIfNeeded: round)
            let run = try EntryRun(seed: seed)
            do {
                try run.run(steps: 160)
            } catch {
                let trail = run.trail.suffix(50).joined(separator: "\n  ")
                Issue.record("LARDER_SEED=\(seed) LARDER_ROUNDS=1: \(error)\n  \(trail)")
                return
            }
        }
    }
}

/// One random sequence of commands, run on a server without sockets and on the model.
private final class EntryRun {
    struct Difference: Error, CustomStringConvertible { let description: String }

    private static let keys = ["a", "b", "p:a"]
    private static let tags = ["t", "u", "v"]
    private static let megabytes4 = 4 << 20
    /// The policies, with their intervals.
    private static let policies: [(String, Int64?)] = [
        ("never", nil), ("high", 60_000), ("0.7", 700), ("0.3", 300), ("highest", 10_000),
    ]

    private var server: SocketlessServer
    /// The clients, one for each database.
    private var clients: [TestClient] = []
    private var model: EntryModel
    private var random: SeededGenerator
    private let memoryBytes: Int?
    /// The entry that most of the next steps use.
    private var focus = (0, "a")
    /// All tokens that were granted for each key, the latest last.
    private var tokens: [String: [String]] = [:]
    private var valueCount = 0
    private(set) var trail: [String] = []

    init(seed: UInt64) throws {
        random = SeededGenerator(seed: seed)
        memoryBytes = [nil, 0, 1 << 20][random.below(3)]
        server = try SocketlessServer { [memoryBytes] in if let memoryBytes { $0.memoryBytes = memoryBytes } }
        model = EntryModel(time: server.time.wallMilliseconds(), databases: [])
        model.databases = (0..<3).map { _ in EntryModel.Database(grace: [0, 1000, 3000][random.below(3)]) }
        connect()
        for (index, database) in model.databases.enumerated() {
            let (policy, interval) = Self.policies[random.below(Self.policies.count)]
            let reply = clients[index]("POLICY \(policy) GRACE \(database.grace / 1000)")
            trail.append("\(index)> POLICY \(policy) GRACE \(database.grace / 1000)")
            try expect(reply == Wire.ok, "POLICY: \(reply)")
            model.databases[index].interval = interval
        }
    }

    private func connect() {
        clients = (0..<3).map { _ in server.connect() }
        for index in 1..<3 { _ = clients[index]("SELECT \(index)") }
    }

    func run(steps: Int) throws {
        for step in 0..<steps {
            for (database, key) in try self.step() { try check(database, key) }
            let leases = model.databases.reduce(0) { $0 + $1.leases.count }
            try expect(server.engine.leases.leases.read() <= leases, "a lease that should have ended still exists")
            if step % 40 == 39 { try checkAll() }
        }
        try checkAll()
        try restart()
        try checkAll()
    }

    private func expect(_ isTrue: Bool, _ text: @autoclosure () -> String) throws {
        if !isTrue { throw Difference(description: text()) }
    }

    private func expect(_ reply: String, _ expected: String, _ what: String) throws {
        if reply != expected {
            throw Difference(description: "\(what): \(Self.shown(reply)) instead of \(Self.shown(expected))")
        }
    }

    private static func shown(_ text: String) -> String {
        text.utf8.count > 100
            ? "\(text.prefix(60))… (\(text.utf8.count) bytes)".debugDescription : text.debugDescription
    }

    // MARK: Steps

    /// Runs a random command.
    /// - Returns: the entries to check after it.
    private func step() throws -> [(Int, String)] {
        // Use the same entry for several steps: most defects appear when several things happen to one entry.
        if random.oneIn(4) { focus = (random.below(3), Self.keys[random.below(Self.keys.count)]) }
        let (database, key) = focus
        if random.oneIn(4), let entry = model.kept(database, key), model.state(entry, database) == .stale {
            // Fetch the stale entry, and store the fetched value.
            let isLeased = model.databases[database].leases[key] != nil
            if !isLeased {
                try fetch(database, key)
            } else if random.oneIn(2) {
                try release(database, key)
            } else {
                try set(database, key)
            }
            return [focus]
        }
        switch random.below(100) {
        case 0..<14: advance()
        case 14..<30: try set(database, key)
        case 30..<33: return try store(database, key)
        case 33..<38: try change(database, key)
        case 38..<44: try expire(database, key)
        case 44..<46: try persist(database, key)
        case 46..<49: try getex(database, key)
        case 49..<56: return try copy(database, key)
        case 56..<59: return try rename(database, key)
        case 59..<61: try remove(database, key)
        case 61..<69: return try purgeTags(random.oneIn(2) ? database : random.below(3))
        case 69..<81: try fetch(database, key)
        case 81..<91: try release(database, key)
        case 91: return try purge(random.below(3))
        case 92..<96:
            let target = random.below(3)
            for _ in 0..<(1 + random.below(3)) { try setPolicy(target) }
            if let (database, key) = olderThanAPolicy(target) { return try copy(database, key, to: target) }
        case 96..<98: maintain()
        case 98: try restart()
        default: try mget(database)
        }
        return [(database, key)]
    }

    private func call(_ database: Int, _ words: [String], mayWrap: Bool = true) -> String {
        let line = "\(database)> " + words.map(Self.shown).joined(separator: " ")
        if mayWrap, random.oneIn(10) {
            _ = clients[database](["MULTI"])
            _ = clients[database](words)
            let reply = clients[database](["EXEC"])
            trail.append("\(model.time) in MULTI \(line) \(Self.shown(reply))")
            return reply.hasPrefix("*1\r\n") ? String(reply.dropFirst(3)) : reply
        }
        let reply = clients[database](words)
        trail.append("\(model.time) \(line) \(Self.shown(reply))")
        return reply
    }

    private func advance() {
        var milliseconds = Int64(random.oneIn(10) ? 40_000 : [random.below(20), random.below(800)][random.below(2)])
        let (database, key) = focus
        // Most often advance exactly to the end of a lifetime or of a grace.
        if let entry = model.kept(database, key), let deadline = model.deadline(entry, database), !random.oneIn(4) {
            let isFresh = model.state(entry, database) == .fresh
            let grace = entry.grace ?? model.databases[database].grace
            milliseconds = max(0, (isFresh ? deadline : deadline + grace) - model.time - (random.oneIn(3) ? 1 : 0))
            if milliseconds > 70_000 || !isFresh && random.oneIn(2) { milliseconds = 1 }
        }
        server.time.advance(milliseconds: milliseconds)
        model.time += milliseconds
        trail.append("+\(milliseconds)")
    }

    private func maintain() {
        server.engine.maintain()
        trail.append("maintain")
    }

    private func restart() throws {
        let previous = server
        previous.engine.shutdown()
        server = try SocketlessServer(reopening: previous, clock: previous.time) { [memoryBytes] in
            if let memoryBytes { $0.memoryBytes = memoryBytes }
        }
        connect()
        model.restart()
        trail.append("restart")
        try expect(server.engine.now() == model.time, "another time after the restart")
    }

    // MARK: Storing

    private func set(_ database: Int, _ key: String) throws {
        let previous = model.fresh(database, key)
        let value = newValue(database, key)
        var entry = EntryModel.Entry(value: value, storedAt: model.time)
        var options: [[String]] = []
        var isAllowed = true
        var (keepsLife, keepsTags, isOver) = (false, false, false)
        switch random.below(12) {
        case 0:
            options.append(["NX"])
            isAllowed = previous == nil
        case 1:
            options.append(["XX"])
            isAllowed = previous != nil
        case 2:
            let other = random.oneIn(2) ? previous?.value ?? "none" : "none"
            options.append(["IFEQ", other])
            isAllowed = previous.map { $0.value == other } ?? false
        case 3:
            let other = random.oneIn(2) ? previous?.value ?? "none" : "none"
            options.append(["IFNE", other])
            isAllowed = previous.map { $0.value != other } ?? true
        default: break
        }
        let returnsPrevious = random.oneIn(5)
        if returnsPrevious { options.append(["GET"]) }
        switch random.below(10) {
        case 0..<3:
            keepsLife = true
            options.append(["KEEPTTL"])
        case 3..<6:
            let (words, deadline) = newLife(isPositive: true, "EX", "PX", "EXAT", "PXAT")
            options.append(words)
            entry.rule = .own(deadline)
            isOver = deadline <= model.time
        case 6:
            let (policy, interval) = Self.policies[random.below(Self.policies.count)]
            options.append(["POLICY", policy])
            entry.rule = interval.map { .own(model.time + $0) } ?? .never
        default: break
        }
        if random.oneIn(3) {
            let grace = Int64(random.below(4))
            options.append(["GRACE", "\(grace)"])
            entry.grace = grace * 1000
        }
        var newTags: [String]?
        if random.oneIn(3) {
            let tags = Array(Self.tags.shuffled(using: &random).prefix(1 + random.below(3)))
            options.append(["TAGS", "\(tags.count)"] + tags)
            newTags = tags
        } else if random.oneIn(4) {
            keepsTags = true
            options.append(["KEEPTAGS"])
        }
        if random.oneIn(8) {
            options.append(["CODEC", "json"])
            entry.codec = "json"
        }
        let token = random.oneIn(3) ? self.token(database, key) : nil
        if let token { options.append(["TOKEN", token]) }
        var kept: EntryModel.Entry?
        if keepsLife || keepsTags {
            kept = token == nil ? previous : model.kept(database, key)
            if token != nil, let entry = kept { kept?.rule = model.renewed(entry) }
        }
        if keepsLife {
            entry.rule = kept?.rule ?? .governed
            entry.grace = entry.grace ?? kept?.grace
        }
        entry.tags = newTags ?? kept?.tags ?? []
        if isAllowed, let token { isAllowed = model.holds(database, key, token, tags: entry.tags) }
        if isAllowed {
            if isOver {
                model.remove(database, key, isRefresh: token != nil)
            } else {
                model.store(database, key, entry, isRefresh: token != nil)
            }
        }
        let reply = call(database, ["SET", key, value] + options.shuffled(using: &random).joined())
        let expected = returnsPrevious ? bulk(previous?.value) : isAllowed ? Wire.ok : Wire.null
        try expect(reply, expected, "SET")
    }

    /// Runs other commands that store entries.
    private func store(_ database: Int, _ key: String) throws -> [(Int, String)] {
        let (value, previous) = (newValue(database, key), model.fresh(database, key))
        let new = EntryModel.Entry(value: value, storedAt: model.time)
        switch random.below(5) {
        case 0:
            if previous == nil { model.store(database, key, new) }
            try expect(call(database, ["SETNX", key, value]), Wire.int(previous == nil ? 1 : 0), "SETNX")
        case 1:
            model.store(database, key, new)
            try expect(call(database, ["GETSET", key, value]), bulk(previous?.value), "GETSET")
        case 2:
            let seconds = 1 + random.below(4)
            var entry = new
            entry.rule = .own(model.time + Int64(seconds) * 1000)
            model.store(database, key, entry)
            try expect(call(database, ["SETEX", key, "\(seconds)", value]), Wire.ok, "SETEX")
        case 3:
            let keys = pair(key)
            for key in keys { model.store(database, key, new) }
            try expect(call(database, ["MSET"] + keys.flatMap { [$0, value] }), Wire.ok, "MSET")
            return keys.map { (database, $0) }
        default:
            let keys = pair(key)
            let isAllowed = keys.allSatisfy { model.fresh(database, $0) == nil }
            if isAllowed { for key in keys { model.store(database, key, new) } }
            let reply = call(database, ["MSETNX"] + keys.flatMap { [$0, value] })
            try expect(reply, Wire.int(isAllowed ? 1 : 0), "MSETNX")
            return keys.map { (database, $0) }
        }
        return [(database, key)]
    }

    private func pair(_ key: String) -> [String] {
        [key, Self.keys.filter { $0 != key }.randomElement(using: &random) ?? key]
    }

    private func change(_ database: Int, _ key: String) throws {
        let previous = model.fresh(database, key)?.value
        switch random.below(4) {
        case 0:
            let value = newValue(database, key)
            let text = (previous ?? "") + value
            model.change(database, key, to: text)
            try expect(call(database, ["APPEND", key, value]), Wire.int(text.utf8.count), "APPEND")
        case 1:
            var bytes = Array((previous ?? "").utf8)
            let value = random.oneIn(8) ? "" : "w\(random.below(100))"
            let far = random.oneIn(40) ? Self.megabytes4 : random.oneIn(4) ? 5000 : 12
            let offset = random.below(bytes.count + far)
            if !value.isEmpty {
                let missing = offset + value.utf8.count - bytes.count
                if missing > 0 { bytes += [UInt8](repeating: 0, count: missing) }
                bytes.replaceSubrange(offset..<(offset + value.utf8.count), with: value.utf8)
                model.change(database, key, to: String(decoding: bytes, as: UTF8.self))
            }
            try expect(call(database, ["SETRANGE", key, "\(offset)", value]), Wire.int(bytes.count), "SETRANGE")
        default:
            let amount = random.below(20) - 10
            let words = [
                ["INCRBY", key, "\(amount)"], ["DECRBY", key, "\(-amount)"],
                amount < 0 ? ["DECR", key] : ["INCR", key],
            ][random.below(3)]
            let change = words.count == 3 ? amount : amount < 0 ? -1 : 1
            let number =
                previous.map { text in
                    text.utf8.count > 18 ? nil : Int(text).flatMap { String($0) == text ? $0 : nil }
                } ?? 0
            guard let number else { return try expect(call(database, words), Wire.notAnInteger, words[0]) }
            model.change(database, key, to: String(number + change))
            try expect(call(database, words), Wire.int(number + change), words[0])
        }
    }

    // MARK: Lives

    /// Returns random words for an entry's deadline, and the deadline that they mean.
    private func newLife(
        isPositive: Bool, _ seconds: String, _ milliseconds: String, _ secondsAt: String, _ millisecondsAt: String
    ) -> ([String], Int64) {
        let least = isPositive ? 1 : -1
        switch random.below(4) {
        case 0:
            let value = random.oneIn(6) ? 100 : least + random.below(4)
            return ([seconds, "\(value)"], model.time + Int64(value) * 1000)
        case 1:
            let value = random.oneIn(4) ? least : random.below(4000) + 1
            return ([milliseconds, "\(value)"], model.time + Int64(value))
        case 2:
            let value = model.time / 1000 + Int64(random.below(6) - 1)
            return ([secondsAt, "\(value)"], value * 1000)
        default:
            let value = model.time + Int64(random.below(4000) - 600)
            return ([millisecondsAt, "\(value)"], value)
        }
    }

    private func expire(_ database: Int, _ key: String) throws {
        let (words, deadline) = newLife(isPositive: false, "EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT")
        let conditions = [[], [], ["NX"], ["XX"], ["GT"], ["LT"], ["XX", "GT"], ["XX", "LT"]][random.below(8)]
        var isChanged = false
        if var entry = model.fresh(database, key) {
            let present = model.deadline(entry, database)
            isChanged = conditions.allSatisfy { condition in
                switch condition {
                case "NX": present == nil
                case "XX": present != nil
                case "GT": deadline > present ?? .max
                default: deadline < present ?? .max
                }
            }
            if isChanged {
                entry.rule = .own(deadline)
                if deadline > model.time {
                    model.store(database, key, entry)
                } else {
                    model.remove(database, key)
                }
            }
        }
        let reply = call(database, [words[0], key, words[1]] + conditions)
        try expect(reply, Wire.int(isChanged ? 1 : 0), words[0])
    }

    /// Removes the deadline of an entry in the model.
    /// - Returns: whether the entry had a deadline.
    private func makePermanent(_ database: Int, _ key: String) -> Bool {
        guard var entry = model.fresh(database, key), entry.rule != .never else { return false }
        let hadDeadline = model.deadline(entry, database) != nil
        entry.rule = .never
        model.store(database, key, entry)
        return hadDeadline
    }

    private func persist(_ database: Int, _ key: String) throws {
        let hadDeadline = makePermanent(database, key)
        try expect(call(database, ["PERSIST", key]), Wire.int(hadDeadline ? 1 : 0), "PERSIST")
    }

    private func getex(_ database: Int, _ key: String) throws {
        let previous = model.fresh(database, key)
        var options: [String] = []
        switch random.below(4) {
        case 0: break
        case 1:
            options = ["PERSIST"]
            _ = makePermanent(database, key)
        default:
            let (words, deadline) = newLife(isPositive: true, "EX", "PX", "EXAT", "PXAT")
            options = words
            if var entry = previous {
                entry.rule = .own(deadline)
                if deadline > model.time {
                    model.store(database, key, entry)
                } else {
                    model.remove(database, key)
                }
            }
        }
        try expect(call(database, ["GETEX", key] + options), bulk(previous?.value), "GETEX")
    }

    // MARK: Other keys and databases

    private func copy(_ database: Int, _ key: String, to target: Int? = nil) throws -> [(Int, String)] {
        let target = target ?? random.below(3)
        let same = Wire.error("ERR source and destination objects are the same")
        if random.oneIn(3) {
            let reply = call(database, ["MOVE", key, "\(target)"])
            guard target != database else {
                try expect(reply, same, "MOVE")
                return []
            }
            let isMoved = try transfer(database, key, to: target, key, replaces: false)
            if isMoved { model.remove(database, key) }
            try expect(reply, Wire.int(isMoved ? 1 : 0), "MOVE")
            return [(database, key), (target, key)]
        }
        let other = Self.keys[random.below(Self.keys.count)]
        let replaces = random.oneIn(2)
        var options: [[String]] = replaces ? [["REPLACE"]] : []
        if target != database || random.oneIn(2) { options.append(["DB", "\(target)"]) }
        let reply = call(database, ["COPY", key, other] + options.shuffled(using: &random).joined())
        guard target != database || key != other else {
            try expect(reply, same, "COPY")
            return []
        }
        let isCopied = try transfer(database, key, to: target, other, replaces: replaces)
        try expect(reply, Wire.int(isCopied ? 1 : 0), "COPY")
        return [(database, key), (target, other)]
    }

    private func transfer(
        _ database: Int, _ key: String, to target: Int, _ other: String, replaces: Bool
    ) throws -> Bool {
        guard let entry = model.fresh(database, key), replaces || model.fresh(target, other) == nil else {
            return false
        }
        model.place(target, other, entry)
        return true
    }

    private func rename(_ database: Int, _ key: String) throws -> [(Int, String)] {
        let other = Self.keys[random.below(Self.keys.count)]
        let onlyIfAbsent = random.oneIn(3)
        let reply = call(database, [onlyIfAbsent ? "RENAMENX" : "RENAME", key, other])
        guard let entry = model.fresh(database, key) else {
            try expect(reply, Wire.error("ERR no such key"), "RENAME")
            return []
        }
        let isRenamed = key == other ? !onlyIfAbsent : !(onlyIfAbsent && model.fresh(database, other) != nil)
        if isRenamed, key != other {
            model.remove(database, key)
            model.place(database, other, entry)
        }
        try expect(reply, onlyIfAbsent ? Wire.int(isRenamed ? 1 : 0) : Wire.ok, "RENAME")
        return [(database, key), (database, other)]
    }

    // MARK: Removing

    private func remove(_ database: Int, _ key: String) throws {
        let previous = model.fresh(database, key)
        switch random.below(3) {
        case 0:
            model.remove(database, key)
            try expect(call(database, ["DEL", key]), Wire.int(previous == nil ? 0 : 1), "DEL")
        case 1:
            model.remove(database, key)
            try expect(call(database, ["GETDEL", key]), bulk(previous?.value), "GETDEL")
        default:
            let value = random.oneIn(2) ? previous?.value ?? "none" : "none"
            let isRemoved = previous.map { $0.value == value } ?? false
            if isRemoved { model.remove(database, key) }
            try expect(call(database, ["DELEX", key, "IFEQ", value]), Wire.int(isRemoved ? 1 : 0), "DELEX")
        }
    }

    private func purgeTags(_ database: Int) throws -> [(Int, String)] {
        var tags = Array(Self.tags.shuffled(using: &random).prefix(random.oneIn(4) ? 2 : 1))
        if random.oneIn(2), let tag = model.kept(database, focus.1)?.tags.randomElement(using: &random) { tags = [tag] }
        let isSoft = !random.oneIn(3)
        let gone = model.databases[database].entries.filter { model.state($0.value, database) == .gone }
        if isSoft, !gone.isEmpty {
            // Remove entries whose grace ended because of an earlier soft purge. If their space was not reclaimed yet,
            // this purge would make them stale again.
            _ = call(database, ["PURGE", "EXPIRED"], mayWrap: false)
            for key in gone.keys { model.databases[database].entries[key] = nil }
        }
        model.purge(database, tags: Set(tags), soft: isSoft)
        let reply = call(database, ["PURGE", "TAG"] + tags + (isSoft ? ["SOFT"] : []), mayWrap: false)
        try expect(reply, Wire.ok, "PURGE TAG")
        // The purge must not affect entries with this tag that are copied from other databases later.
        if random.oneIn(2), let place = anyFresh(besides: database, { !$0.tags.filter(tags.contains).isEmpty }) {
            _ = try copy(place.0, place.1, to: database)
        }
        return Self.keys.map { (database, $0) }
    }

    private func purge(_ database: Int) throws -> [(Int, String)] {
        switch random.below(4) {
        case 0:
            model.empty(database)
            try expect(call(database, ["FLUSHDB"], mayWrap: false), Wire.ok, "FLUSHDB")
        case 1:
            for key in Self.keys where key.hasPrefix("p:") { model.remove(database, key) }
            _ = call(database, ["PURGE", "PREFIX", "p:"], mayWrap: false)
        default: _ = call(database, ["PURGE", "EXPIRED"], mayWrap: false)
        }
        return Self.keys.map { (database, $0) }
    }

    private func setPolicy(_ database: Int) throws {
        let (policy, interval) = Self.policies[random.below(Self.policies.count)]
        model.setPolicy(database, interval)
        try expect(call(database, ["POLICY", policy], mayWrap: false), Wire.ok, "POLICY")
    }

    /// Finds an entry of another database that follows the policy, and is so old that it would have expired under an
    /// earlier policy of the database `target`.
    private func olderThanAPolicy(_ target: Int) -> (Int, String)? {
        anyFresh(besides: target) { $0.rule == .governed && $0.storedAt <= model.databases[target].deadBefore }
    }

    private func anyFresh(besides target: Int, _ isMeant: (EntryModel.Entry) -> Bool) -> (Int, String)? {
        let places = (0..<3).filter { $0 != target }.flatMap { database in Self.keys.map { (database, $0) } }
        return places.filter { model.fresh($0.0, $0.1).map(isMeant) ?? false }.randomElement(using: &random)
    }

    // MARK: Leases

    private func fetch(_ database: Int, _ key: String) throws {
        var words = ["FETCH", key]
        var maxAge: Int64?
        if random.oneIn(4) {
            maxAge = random.oneIn(4) ? 0 : Int64(random.below(1000))
            words += ["MAXAGE", "\(maxAge ?? 0)"]
        }
        let lease = random.oneIn(3) ? Int64(1 + random.below(3000)) : nil
        if let lease { words += ["LEASE", "\(lease)"] }
        let expected = model.fetch(database, key, maxAge: maxAge)
        let text = call(database, words, mayWrap: false)
        guard let reply = FetchReply(text) else { throw Difference(description: "FETCH: \(Self.shown(text))") }
        let answer: EntryModel.Answer =
            if let value = reply.value {
                .served(reply.state, value, Int64(reply.age), Int64(reply.ttl))
            } else {
                .none(reply.state, Int64(reply.ttl))
            }
        try expect(answer == expected, "FETCH: \(Self.shown("\(answer)")) instead of \(Self.shown("\(expected)"))")
        try expect((reply.token != nil) == (reply.state == "lead"), "a token is for the client that leads")
        guard let token = reply.token else { return }
        model.grant(database, key, token, milliseconds: lease)
        tokens["\(database) \(key)", default: []].append(token)
    }

    private func release(_ database: Int, _ key: String) throws {
        guard let token = token(database, key) else { return }
        let milliseconds = Int64(1 + random.below(3000))
        let lost = Wire.null
        switch random.below(7) {
        case 0:
            let isValid = model.holds(database, key, token, tags: [])
            if isValid { model.databases[database].leases[key] = nil }
            try expect(call(database, ["RELEASE", key, token]), isValid ? Wire.ok : lost, "RELEASE")
        case 1:
            let isValid = model.holdsForAbsence(database, key, token)
            if isValid {
                model.remove(database, key)
                model.databases[database].rests[key] = .absent(until: model.time + milliseconds)
            }
            let reply = call(database, ["RELEASE", key, token, "ABSENT", "\(milliseconds)"])
            try expect(reply, isValid ? Wire.ok : lost, "RELEASE ABSENT")
        case 2:
            let isValid = model.holds(database, key, token, tags: [])
            if isValid {
                model.databases[database].leases[key] = nil
                model.databases[database].rests[key] = .failed(until: model.time + milliseconds)
            }
            let reply = call(database, ["RELEASE", key, token, "FAILED", "\(milliseconds)"])
            try expect(reply, isValid ? Wire.ok : lost, "RELEASE FAILED")
        default: try releaseUnchanged(database, key, token)
        }
    }

    private func releaseUnchanged(_ database: Int, _ key: String, _ token: String) throws {
        let kept = model.kept(database, key)
        let isValid = model.holds(database, key, token, tags: kept?.tags ?? [])
        let isPurged = isValid && !(model.databases[database].leases[key]?.purged.isEmpty ?? true)
        if isValid, var entry = kept {
            entry.rule = model.renewed(entry)
            entry.storedAt = model.time
            entry.softEnds = [:]
            model.store(database, key, entry, isRefresh: true)
        } else if isValid {
            model.databases[database].leases[key] = nil
        }
        let reply = call(database, ["RELEASE", key, token, "UNCHANGED"])
        // The reply is also null if a purged tag belongs to an expired entry whose space was not reclaimed.
        if isPurged, kept == nil, reply == Wire.null { return }
        let nothing = Wire.error("ERR UNCHANGED needs a stored value, and there is none; the lease was released")
        try expect(reply, !isValid ? Wire.null : kept == nil ? nothing : Wire.ok, "RELEASE UNCHANGED")
    }

    /// Returns a token: most often the last one of the key, otherwise an invalid or expired one.
    private func token(_ database: Int, _ key: String) -> String? {
        if random.oneIn(6) { return tokens.keys.sorted().randomElement(using: &random).flatMap { tokens[$0]?.last } }
        return random.oneIn(5)
            ? tokens["\(database) \(key)"]?.randomElement(using: &random) : tokens["\(database) \(key)"]?.last
    }

    // MARK: Reading

    private func mget(_ database: Int) throws {
        let expected = Self.keys.map { bulk(model.fresh(database, $0)?.value) }.joined()
        try expect(call(database, ["MGET"] + Self.keys), "*\(Self.keys.count)\r\n" + expected, "MGET")
    }

    private func checkAll() throws {
        for database in 0..<3 { for key in Self.keys { try check(database, key) } }
    }

    private func check(_ database: Int, _ key: String) throws {
        let client = clients[database]
        let (kept, fresh) = (model.kept(database, key), model.fresh(database, key))
        let expected = kept.map { expectedMeta($0, database) } ?? "none"
        try expect(meta(client("META \(key)")), expected, "\(database): META \(key)")
        // Compare long values only sometimes.
        if fresh?.value.utf8.count ?? 0 < 1 << 20 || random.oneIn(4) {
            try expect(client("GET \(key)"), bulk(fresh?.value), "\(database): GET \(key)")
        }
        let words = client("TAGS \(key)").split(separator: "\r\n").filter { !$0.hasPrefix("$") || $0 == "$-1" }
        let tags = words.first == "$-1" ? nil : words.dropFirst().map { String($0) }.sorted()
        try expect(tags == fresh?.tags.sorted(), "\(database): TAGS \(key): \(words), not \(fresh?.tags ?? [])")
    }

    private func expectedMeta(_ entry: EntryModel.Entry, _ database: Int) -> String {
        let rule =
            switch entry.rule {
            case .governed: "governed"
            case .own: "own"
            case .never: "never"
            }
        return "\(entry.storedAt) \(model.deadline(entry, database) ?? -1) \(rule) "
            + "\(entry.grace ?? model.databases[database].grace) \(entry.value.utf8.count) \(entry.codec) "
            + model.state(entry, database).rawValue
    }

    /// Returns the text to compare with the expected one, from a reply of META.
    private func meta(_ reply: String) -> String {
        if reply == Wire.null { return "none" }
        let words = reply.split(separator: "\r\n").filter { !"*$".contains($0.first ?? "*") }
        var fields: [Substring: Substring] = [:]
        for index in stride(from: 0, to: words.count - 1, by: 2) { fields[words[index]] = words[index + 1] }
        func field(_ name: Substring) -> String {
            guard let text = fields[name] else { return "?" }
            return String(text.hasPrefix(":") ? text.dropFirst() : text)
        }
        return ["stored-at", "deadline", "rule", "grace", "size", "codec", "state"].map { field($0) }
            .joined(separator: " ")
    }

    private func bulk(_ value: String?) -> String { value.map { Wire.bulk($0) } ?? Wire.null }

    private func newValue(_ database: Int, _ key: String) -> String {
        valueCount += 1
        let isLeased = model.databases[database].leases[key] != nil
        let length: Int
        switch random.below(isLeased ? 20 : 200) {
        case 0: length = Self.megabytes4 + random.below(1000)
        case 1: length = 65_536 + random.below(40_000)
        case 2..<5: length = 4096 + random.below(200) - 100
        case 5..<7: return ""
        case 7..<14: return "\(valueCount)"
        default: length = random.below(24)
        }
        let head = "v\(valueCount)"
        return head + String(repeating: "x", count: max(0, length - head.utf8.count))
    }
}
