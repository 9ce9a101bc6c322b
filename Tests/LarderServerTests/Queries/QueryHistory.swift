import LarderPlatform
import LarderTestSupport

@testable import LarderEngine
@testable import LarderQuerying
@testable import LarderServer

/// A random history of a larder with indexes and live queries, and random queries after its changes. The oracle knows
/// only the acknowledged changes, and evaluates conditions on trees.
///
/// For one thread.
final class QueryHistory {
    struct Mismatch: Error, CustomStringConvertible {
        let description: String
    }

    /// What has happened.
    enum Event: String, CaseIterable {
        case overwrite, expiry, purge, tagPurge, eviction, kill, restart, clockStep, refusedWrite, fullDisk
        case interruptedBuild, salvage, swap, policy, indexedQuery, liveCheck
    }

    private struct Live {
        let reader: LiveReader
        let handle: LiveQueryHandle
        let query: HistoryQuery
        let hasTexts: Bool
    }

    private(set) var counts: [Event: Int] = [:]
    private(set) var queryCount = 0
    private(set) var trail: [String] = []
    private var random: SeededGenerator
    private var server: SocketlessServer
    private var clients: [TestClient] = []
    private var model = QueryModel()
    private var live: [Live] = []
    /// A small file system that has the larder; nil after a kill, and in most histories.
    private var disk: SmallDisk?
    private let isFailing = Guarded(false)
    private let configure: (inout EngineOptions) -> Void
    private let keyCount: Int
    /// Entries either change databases, or follow changes of the policy.
    private let hasSwaps: Bool
    private var isDiskFull = false

    private static let documentPolicies: [(name: String, interval: Int64?)] = [
        ("never", nil), ("2", 2_000), ("high", 60_000), ("low", 86_400_000),
    ]

    init(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let isFailing = isFailing
        // Building an index of so many entries takes several steps.
        keyCount = random.oneIn(40) ? 1_100 : 20 + random.below(50)
        hasSwaps = random.oneIn(2)
        let writeBufferBytes = random.oneIn(2) ? 64 << 10 : 4 << 20
        let memoryBytes = [0, 20_000, 16 << 20][random.below(3)]
        let pinnedBytesMin = [1, 100, 1 << 20][random.below(3)]
        let journalSegmentBytes = [4_000, 16 << 20][random.below(2)]
        let isBusy = random.oneIn(3)
        configure = { options in
            options.writeBufferBytes = writeBufferBytes
            options.memoryBytes = memoryBytes
            options.pinnedBytesMin = pinnedBytesMin
            options.journalSegmentBytes = journalSegmentBytes
            options.backgroundMaintenance = isBusy
            options.maintenanceMilliseconds = 1
            options.beforeCommit = { () throws(LarderError) in
                if isFailing.value { throw LarderError(.io, "told to fail", operation: "test") }
            }
        }
        if SmallDisk.isPossible, random.oneIn(3) { disk = try SmallDisk(bytes: 32 << 20) }
        let directory = try disk.map { try TemporaryDirectory(in: $0.path) } ?? TemporaryDirectory(inMemory: true)
        server = try SocketlessServer(in: directory, policy: .never, configure: configure)
        self.random = random
        connect()
        trail.append("\(keyCount) keys, memory \(memoryBytes), busy \(isBusy), disk \(disk != nil)")
    }

    /// Runs until this many queries were compared, or fewer if they are slow.
    func run(queries: Int) throws {
        let wanted = keyCount > 1000 ? queries / 20 : queries
        for number in 0..<(keyCount * 3 / 4) { try set(key: "k\(number)") }
        while queryCount < wanted {
            for _ in 0...random.below(12) { try change() }
            expire()
            for _ in 0...random.below(24) { try query() }
            try checkLive()
        }
    }

    private func connect() {
        clients = [server.connect(), server.connect()]
        _ = clients[1]("SELECT 1")
    }

    private func count(_ event: Event, _ more: Int = 1) { counts[event, default: 0] += more }

    private func expire() { count(.expiry, model.expire(server.engine.now())) }

    private func books() throws -> Database { try server.engine.database("0") }

    /// Runs a command that changes entries. It may fail only while commits are made to fail, or the disk is full.
    private func change(_ words: [String], in number: Int = 0, _ apply: (inout QueryModel) -> Void) throws {
        expire()
        let reply = clients[number](words)
        trail.append(
            "\(number): \(words.joined(separator: " ")) \(reply.prefix(60).split(separator: "\r\n").first ?? "")")
        guard reply.hasPrefix("-") else {
            if isFailing.value { throw Mismatch(description: "a commit did not fail") }
            return apply(&model)
        }
        guard isFailing.value || isDiskFull else { throw Mismatch(description: "\(words): \(reply)") }
        count(isDiskFull ? .fullDisk : .refusedWrite)
    }

    private func change() throws {
        switch random.below(100) {
        case 0..<46: try write()
        case 46..<49: try changeLife()
        case 49..<52: try copy()
        case 52..<56: try purge()
        case 56..<58: try swapOrChangePolicy()
        case 58..<64: passTime()
        case 64..<66: stepClock()
        case 66..<70: store()
        case 70..<76: try work()
        case 76..<82: try changeIndexes()
        case 82..<84: try evict()
        case 84: try salvage()
        case 85: try restart()
        case 86: try kill()
        case 87..<90: try refuse()
        case 90..<96: try changeLive()
        default: try set(in: 1)
        }
    }

    // MARK: Entries

    private func key() -> String { "k\(random.below(keyCount))" }

    private func write() throws {
        if random.below(5) > 0 { return try set() }
        let key = key()
        try change(["DEL", key]) { $0.databases[0][key] = nil }
    }

    private func set(key given: String? = nil, in number: Int = 0) throws {
        let key = given ?? key()
        let tree: QueryTree? = random.oneIn(20) ? nil : random.oneIn(12) ? .value(&random) : .object(&random)
        var words = ["SET", key, tree?.json(&random) ?? "not JSON"]
        var entry = QueryModel.Entry(text: words[2], tree: tree, stored: server.engine.now())
        switch random.below(6) {
        case 0:
            let milliseconds = 1 + Int64(random.below(3_000))
            words += ["PX", "\(milliseconds)"]
            entry.life = .until(entry.stored + milliseconds)
        case 1:
            entry.tags = random.oneIn(3) ? ["t0", "t1"] : ["t\(random.below(2))"]
            words += ["TAGS", "\(entry.tags.count)"] + entry.tags.sorted()
        default: break
        }
        if model.databases[number][key] != nil { count(.overwrite) }
        try change(words, in: number) { $0.databases[number][key] = entry }
    }

    private func changeLife() throws {
        let key = key()
        if random.oneIn(3) { return try change(["PERSIST", key]) { $0.databases[0][key]?.life = .forever } }
        let milliseconds = 1 + Int64(random.below(3_000))
        let deadline = server.engine.now() + milliseconds
        try change(["PEXPIRE", key, "\(milliseconds)"]) { $0.databases[0][key]?.life = .until(deadline) }
    }

    private func copy() throws {
        expire()
        let (key, other) = (key(), key())
        guard key != other, let entry = model.databases[0][key] else { return }
        let moves = random.oneIn(2)
        try change(moves ? ["RENAME", key, other] : ["COPY", key, other, "REPLACE"]) { model in
            model.databases[0][other] = entry
            if moves { model.databases[0][key] = nil }
        }
    }

    private func purge() throws {
        switch random.below(16) {
        case 0:
            count(.purge)
            try change([random.oneIn(2) ? "PURGE" : "FLUSHDB"]) { $0.databases[0] = [:] }
        case 1..<4:
            count(.purge)
            try change(["PURGE", "PREFIX", "k1"]) { model in
                model.databases[0] = model.databases[0].filter { !$0.key.hasPrefix("k1") }
            }
        default:
            let tag = "t\(random.below(2))"
            count(.tagPurge)
            try change(["PURGE", "TAG", tag] + (random.oneIn(2) ? ["SOFT"] : [])) { model in
                model.databases[0] = model.databases[0].filter { !$0.value.tags.contains(tag) }
            }
        }
    }

    private func swapOrChangePolicy() throws {
        if hasSwaps {
            count(.swap)
            return try change(["SWAPDB", "0", "1"]) { $0.databases.swapAt(0, 1) }
        }
        let (name, interval) = Self.documentPolicies[random.below(Self.documentPolicies.count)]
        count(.policy)
        try change(["POLICY", name]) { $0.setPolicy(interval: interval) }
    }

    // MARK: Time and storage

    private func passTime() {
        let milliseconds = Int64(random.below(1_500))
        trail.append("pass \(milliseconds) ms")
        server.time.advance(milliseconds: milliseconds)
    }

    private func stepClock() {
        let milliseconds: Int64 = [-86_400_000, -5_000, 700, 60_000][random.below(4)]
        trail.append("step \(milliseconds) ms")
        count(.clockStep)
        server.time.stepWall(milliseconds: milliseconds)
    }

    private func store() {
        trail.append("SAVE")
        _ = clients[0]("SAVE")
    }

    /// Runs a part of the background work, or all of it.
    private func work() throws {
        guard random.oneIn(2) else {
            trail.append("maintain")
            server.engine.maintain()
            return
        }
        let books = try books()
        trail.append("index work")
        // Let checkpoints remove stale hints, until the work looks for them again.
        if random.oneIn(2) { books.indexing.churn.store(.max / 2, ordering: .relaxed) }
        _ = try IndexWork(books.context) { [books] }.step(books)
    }

    private func changeIndexes() throws {
        let name = "i\(random.below(4))"
        if random.oneIn(4) {
            trail.append("drop \(name)")
            _ = clients[0](["INDEX", "DROP", name])
            return
        }
        let paths = HistoryQuery.paths.shuffled(using: &random).prefix(1 + random.below(2))
        let order = paths.flatMap { random.oneIn(3) ? [$0, "DESC"] : [$0] }
        let prefix = random.oneIn(4) ? ["PREFIX", "k1"] : []
        let words = ["INDEX", "CREATE", name] + prefix + ["ON"] + order
        trail.append(words.joined(separator: " "))
        let reply = clients[0](words)
        guard reply == Wire.ok else { throw Mismatch(description: "\(words): \(reply)") }
        if random.oneIn(2) { server.engine.maintain() }
    }

    /// Removes entries from LevelDB, as for a disk limit.
    private func evict() throws {
        let books = try books()
        guard let store = books.durableState.store, store.isMade else { return }
        // Otherwise a replay of the journal would restore the entries.
        try books.checkpointer.checkpoint()
        trail.append("evict")
        let before = server.engine.statistics.evicted.read()
        let pass = EvictionPass(
            database: books, store: store, estimate: EvictionEstimate(now: books.now(), residence: 1000),
            threshold: .infinity, rangeBytes: 1 << 20, wantedBytes: 100 + random.below(2_000))
        _ = try pass.run(from: [KeyKind.record], leastShare: 0)
        expire()
        let left = try model.databases[0].filter { try books.get(Key(Array($0.key.utf8))) != nil }
        let evicted = model.databases[0].count - left.count
        guard evicted <= server.engine.statistics.evicted.read() - before else {
            throw Mismatch(description: "\(evicted) entries are gone")
        }
        count(.eviction, evicted)
        model.databases[0] = left
    }

    /// Copies all entries to new files, as after damage.
    private func salvage() throws {
        let books = try books()
        guard let store = books.durableState.store, store.isMade, random.oneIn(2) else { return }
        trail.append("salvage")
        let damage = LarderError(.damaged, "told to be damaged", operation: "test")
        if try books.salvage(store, damage) != nil { count(.salvage) }
    }

    private func noteBuilds() {
        if clients[0]("INDEX").contains("building") { count(.interruptedBuild) }
    }

    private func restart() throws {
        noteBuilds()
        trail.append("restart")
        count(.restart)
        try replaceServer {
            server.engine.shutdown()
            return server.directory
        }
    }

    /// Continues with a copy of the files: what the next process finds after a SIGKILL.
    private func kill() throws {
        noteBuilds()
        trail.append("kill")
        count(.kill)
        try replaceServer {
            let directory = try TemporaryDirectory(inMemory: true)
            try Files.copyUnchanged(server.directory.path + "/larder", to: directory.path + "/larder")
            return directory
        }
    }

    private func replaceServer(_ leave: () throws -> TemporaryDirectory) throws {
        live = []
        let before = server.engine.now()
        let directory = try leave()
        let isMoved = directory.path != server.directory.path
        server = try SocketlessServer(in: directory, policy: .never, clock: server.time, configure: configure)
        if isMoved { disk = nil }
        connect()
        // A kill may set the time back by a little: see docs/Testing.md.
        let late = before - server.engine.now()
        if late > 0 { server.time.advance(milliseconds: late) }
        guard server.engine.now() >= before else { throw Mismatch(description: "the time is \(late) ms behind") }
    }

    private var isReadable: Bool { clients.allSatisfy { !$0("QUERY COUNT").hasPrefix("-") } }

    /// Makes writes fail for a while: the commits, or the disk is full.
    private func refuse() throws {
        if let disk, random.oneIn(2) {
            trail.append("full disk")
            disk.fill(leaving: 4096 * random.below(3))
            isDiskFull = true
        } else {
            trail.append("failing commits")
            isFailing.value = true
        }
        for _ in 0...random.below(5) { try set() }
        // After a restart, a database may not be opened before there is space. It then returns errors.
        if isReadable { for _ in 0..<3 { try query() } }
        isFailing.value = false
        if let disk, isDiskFull {
            try Files.remove(disk.filler)
            for _ in 0..<1000 where !isReadable {
                server.engine.maintain()
                nap()
            }
        }
        isDiskFull = false
        trail.append("no more failures")
    }

    // MARK: Queries

    private func fail(_ words: [String], _ found: Any, _ expected: Any) -> Mismatch {
        Mismatch(
            description: "\(words.joined(separator: " ")) at \(server.engine.now()):\n found \(found)\n"
                + " expected \(expected)\n indexes \(clients[0]("INDEX"))")
    }

    private func query() throws {
        queryCount += 1
        let query = HistoryQuery(&random)
        let number = random.oneIn(12) ? 1 : 0
        expire()
        let matches = query.matches(in: model, number)
        let isSnapshot = random.oneIn(40)
        if isSnapshot { _ = clients[number]("SNAPSHOT OPEN") }
        switch random.below(20) {
        case 0..<7: try checkPages(query, matches, number)
        case 7..<12: try checkPage(query, matches, number)
        case 12..<16:
            let words = ["QUERY", "COUNT"] + query.whereWords
            let reply = clients[number](words)
            guard reply == Wire.int(matches.count) else { throw fail(words, reply, matches.map(\.key)) }
        case 16, 17: try checkRows(query, matches, number)
        case 18: try checkGroups(query, matches, number)
        default:
            if clients[number](["EXPLAIN", "QUERY", "KEYS"] + query.words).contains("is used (") {
                count(.indexedQuery)
            }
            try checkPage(query, matches, number)
        }
        if isSnapshot { _ = clients[number]("SNAPSHOT CLOSE") }
    }

    /// Returns the lines of a reply of rows after the cursor, and the cursor.
    private func page(_ words: [String], _ number: Int) throws -> (lines: [String], cursor: String?) {
        let reply = clients[number](words)
        let lines = reply.split(separator: "\r\n", omittingEmptySubsequences: false).dropLast().map(String.init)
        guard lines.count > 2, lines[0] == "*2" else { throw fail(words, reply, "rows") }
        return lines[1] == "$-1" ? (Array(lines[3...]), nil) : (Array(lines[4...]), lines[2])
    }

    private func keys(_ words: [String], _ number: Int) throws -> (keys: [String], cursor: String?) {
        let (lines, cursor) = try page(words, number)
        return (stride(from: 1, to: lines.count, by: 2).map { lines[$0] }, cursor)
    }

    private func checkPages(_ query: HistoryQuery, _ matches: [QueryModel.Found], _ number: Int) throws {
        var (found, cursor): ([String], String?) = ([], nil)
        let words = ["QUERY", "KEYS"] + query.words + ["LIMIT", random.oneIn(4) ? "1000" : "\(1 + random.below(20))"]
        repeat {
            let page = try keys(words + (cursor.map { ["AFTER", $0] } ?? []), number)
            found += page.keys
            cursor = page.cursor
        } while cursor != nil && found.count <= matches.count
        let expected = matches.map(\.key)
        guard (query.isSorted ? found : found.sorted()) == (query.isSorted ? expected : expected.sorted()) else {
            throw fail(words, found, expected)
        }
    }

    private func checkPage(_ query: HistoryQuery, _ matches: [QueryModel.Found], _ number: Int) throws {
        let words = ["QUERY", "KEYS"] + query.pageWords
        let found = try keys(words, number).keys
        let expected = query.page(matches).map(\.key)
        if query.isSorted {
            guard found == expected else { throw fail(words, found, expected) }
        } else {
            guard found.count == expected.count, Set(found).count == found.count,
                Set(found).isSubset(of: matches.map(\.key))
            else { throw fail(words, found, expected) }
        }
    }

    private func checkRows(_ query: HistoryQuery, _ matches: [QueryModel.Found], _ number: Int) throws {
        let words = ["QUERY"] + query.words
        let lines = try page(words, number).lines
        var found: [String] = []
        for row in stride(from: 0, to: lines.count, by: 5) { found += [lines[row + 2], lines[row + 4]] }
        let expected = matches.flatMap { [$0.key, $0.entry.text] }
        guard (query.isSorted ? found : found.sorted()) == (query.isSorted ? expected : expected.sorted()) else {
            throw fail(words, found, expected)
        }
    }

    private func checkGroups(_ query: HistoryQuery, _ matches: [QueryModel.Found], _ number: Int) throws {
        var groups: [(value: QueryTree, count: Int)] = []
        for (_, entry) in matches {
            guard let value = entry.tree?["a"] else { continue }
            var distinct: [QueryTree] = []
            for element in value.elements where !distinct.contains(where: { QueryTree.isEqual($0, element) }) {
                distinct.append(element)
            }
            for element in distinct {
                if let index = groups.firstIndex(where: { QueryTree.isEqual($0.value, element) }) {
                    groups[index].count += 1
                } else {
                    groups.append((element, 1))
                }
            }
        }
        let words = ["QUERY", "GROUP", "a", "COUNT"] + query.whereWords
        let lines = clients[number](words).split(separator: "\r\n")
        let found = lines.filter { $0.hasPrefix(":") }.compactMap { Int($0.dropFirst()) }.sorted()
        let expected = groups.map(\.count).sorted()
        guard found == expected, lines.first == "*\(groups.count)" else { throw fail(words, lines, groups) }
    }

    // MARK: Live queries

    private func changeLive() throws {
        if live.count == 4 || live.count > 1 && random.oneIn(3) { live.remove(at: random.below(live.count)) }
        if let slow = live.randomElement(using: &random) { slow.reader.change { $0.isSlow = true } }
        let query = HistoryQuery(&random)
        let hasTexts = random.oneIn(2)
        let reader = LiveReader((hasTexts ? [] : ["KEYS"]) + query.pageWords)
        trail.append("live \(reader.words.joined(separator: " "))")
        live.append(
            Live(
                reader: reader, handle: try reader.begin(server.state.live, in: try books()), query: query,
                hasTexts: hasTexts))
    }

    private func checkLive() throws {
        guard !live.isEmpty else { return }
        // Otherwise, the thread notices a step of the clock after a quarter of a second.
        if !random.oneIn(8) { try change(["SET", "poke", "not JSON"]) { _ in } }
        expire()
        for one in live {
            if one.reader.now.isSlow {
                one.reader.change { $0.isSlow = false }
                one.handle.resume()
            }
            let expected = one.query.page(one.query.matches(in: model, 0)).map { found in
                LiveReader.Row(key: found.key, text: one.hasTexts ? found.entry.text : nil)
            }
            var naps = 0
            while one.reader.rows != expected {
                naps += 1
                guard naps < 10_000 else { throw fail(["LIVE"] + one.reader.words, one.reader.rows, expected) }
                nap()
            }
            let state = one.reader.now
            guard state.problems.isEmpty, state.ended == nil else {
                throw fail(["LIVE"] + one.reader.words, state.problems, state.ended ?? "")
            }
            count(.liveCheck)
        }
    }
}
