import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Random histories of a database with indexes, compared with a dictionary.
@Suite struct IndexModelTests {
    /// To run overnight: `LARDER_ROUNDS=100000 LARDER_SEED=… swift test --filter IndexModelTests`.
    @Test func queriesAgreeWithADictionary() throws {
        let rounds = TestSetting.rounds.number() ?? 60
        let base = testSeed()
        for round in 0..<rounds {
            let seed = base &+ UInt64(truncatingIfNeeded: round)
            let run = try IndexRun(seed: seed)
            do {
                try run.run(steps: 200)
            } catch {
                let trail = run.trail.suffix(60).joined(separator: "\n  ")
                Issue.record("LARDER_SEED=\(seed) LARDER_ROUNDS=1: \(error)\n  \(trail)")
                return
            }
        }
    }
}

private final class IndexRun {
    private struct Mismatch: Error, CustomStringConvertible {
        let description: String
    }

    private struct Value {
        var words: [String]
        var deadline: Int64?
    }

    private var random: SeededGenerator
    private var larder: TestLarder
    /// The larders that were killed. They are kept, because the directory of each contains that of the next.
    private var killed: [TestLarder] = []
    private let isFailing = Guarded(false)
    private var model: [String: Value] = [:]
    private var indexes: Set<String> = []
    private(set) var trail: [String] = []

    init(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let isFailing = isFailing
        larder = try TestLarder { options in
            options.indexMaker = WordIndexMaker()
            options.writeBufferBytes = random.oneIn(2) ? 64 << 10 : 4 << 20
            options.memoryBytes = [0, 20_000, 16 << 20].randomElement(using: &random) ?? 0
            options.pinnedBytesMin = [1, 100, 1 << 20].randomElement(using: &random) ?? 1
            options.journalSegmentBytes = [1000, 16 << 20].randomElement(using: &random) ?? 1000
            options.beforeCommit = { () throws(LarderError) in
                if isFailing.value { throw LarderError(.io, "told to fail", operation: "test") }
            }
        }
        self.random = random
    }

    func run(steps: Int) throws {
        for _ in 0..<steps { try step() }
        try books().finishIndexes()
        for name in indexes { try compare(name, mustBeReady: true) }
        try checkHints()
        try checkStaleHintsGo()
    }

    private func books() throws -> Database { try larder.database("books", policy: .never) }

    private func step() throws {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<30: try put()
        case 30..<38: try remove()
        case 38..<42: try failedPut()
        case 42..<48: try passTime()
        case 48..<56: try flush()
        case 56..<58: try rewrite()
        case 58..<66: try work()
        case 66..<69: try create()
        case 69..<71: try drop()
        case 71..<73: try purge()
        case 73..<76: try reopen()
        case 76..<78: try kill()
        case 78..<80: try maintain()
        case 80..<82: try evict()
        case 82..<84: try checkHints()
        default: for name in indexes { try compare(name, mustBeReady: false) }
        }
    }

    private func note(_ text: String) { trail.append(text) }

    // MARK: Changes

    private func key() -> String { "k\(Int.random(in: 0..<30, using: &random))" }

    private func words() -> [String] {
        let count = random.oneIn(20) ? 40 : Int.random(in: 0..<4, using: &random)
        return (0..<count).map { _ in "w\(Int.random(in: 0..<(count > 4 ? 100 : 6), using: &random))" }
    }

    private func put() throws {
        let (key, words) = (key(), words())
        let now = try larder.engine().now()
        let deadline = random.oneIn(3) ? now + Int64.random(in: 1...5000, using: &random) : nil
        note("put \(key) \(words.joined(separator: ",")) \(deadline.map { "until \($0)" } ?? "")")
        try books().put(key, words.joined(separator: ","), rule: deadline.map { .own($0) } ?? .ownNever)
        model[key] = Value(words: words, deadline: deadline)
    }

    private func remove() throws {
        let key = key()
        note("remove \(key)")
        try books().remove(key)
        model[key] = nil
    }

    private func failedPut() throws {
        let key = key()
        note("failing put \(key)")
        isFailing.value = true
        defer { isFailing.value = false }
        guard errorCode({ try books().put(key, "w1,lost", rule: .ownNever) }) != nil else {
            throw Mismatch(description: "a commit did not fail")
        }
    }

    private func passTime() throws {
        let milliseconds = Int64.random(in: 0...2000, using: &random)
        note("pass \(milliseconds) ms")
        larder.time.advance(milliseconds: milliseconds)
        let now = try larder.engine().now()
        model = model.filter { $0.value.deadline.map { now < $0 } ?? true }
    }

    private func purge() throws {
        note("purge")
        _ = try books().purge(.all(counting: random.oneIn(2)))
        model = [:]
    }

    // MARK: Storage

    private func flush() throws {
        note("flush")
        // As if the background work were too slow, so that the checkpoint removes stale hints.
        if random.oneIn(2) { try books().indexing.churn.store(.max / 2, ordering: .relaxed) }
        if random.oneIn(2) { try books().flush() } else { try books().checkpointer.checkpoint() }
    }

    private func rewrite() throws {
        note("rewrite")
        try (books().checkpointer as? Checkpointer)?.rewrite()
    }

    private func maintain() throws {
        note("maintain")
        try larder.maintain()
    }

    /// Removes entries from LevelDB, as the eviction does.
    private func evict() throws {
        let books = try books()
        guard let store = books.durableState.store, store.isMade else { return }
        // Otherwise a replay of the journal would restore the entries.
        try books.checkpointer.checkpoint()
        note("evict")
        let pass = EvictionPass(
            database: books, store: store,
            estimate: EvictionEstimate(now: books.now(), residence: 1000), threshold: .infinity,
            rangeBytes: 1 << 20, wantedBytes: 200)
        _ = try pass.run(from: [KeyKind.record], leastShare: 0)
        model = try model.filter { try books.value($0.key) != nil }
    }

    private func reopen() throws {
        note("reopen")
        larder.close()
    }

    private func kill() throws {
        note("kill")
        _ = try books()
        killed.append(larder)
        let isFailing = isFailing
        larder = try larder.crashCopy { options in
            options.beforeCommit = { () throws(LarderError) in
                if isFailing.value { throw LarderError(.io, "told to fail", operation: "test") }
            }
        }
        killed.last?.close()
    }

    // MARK: Indexes

    private func create() throws {
        let name = random.oneIn(2) ? "a" : "b"
        let definition = "words\(random.oneIn(4) ? 1 : 0)"
        note("create \(name) \(definition)")
        try books().createIndex(name, definition)
        indexes.insert(name)
    }

    private func drop() throws {
        let name = random.oneIn(2) ? "a" : "b"
        note("drop \(name)")
        let wasThere = try books().indexes.drop(named: name)
        guard wasThere == (indexes.remove(name) != nil) else { throw Mismatch(description: "drop: \(wasThere)") }
    }

    private func work() throws {
        let books = try books()
        note("work")
        let work = IndexWork(books.context) { [books] }
        for _ in 0..<Int.random(in: 1...4, using: &random) where try work.step(books) {}
    }

    // MARK: Checks

    private func compare(_ name: String, mustBeReady: Bool) throws {
        let bounds = [0, 1].map { _ in "w\(Int.random(in: 0..<6, using: &random))" }.sorted()
        let backward = random.oneIn(2)
        let found = try books().keys(
            withWordsFrom: bounds[0], through: bounds[1], in: name, backward: backward)
        guard let found else {
            if mustBeReady { throw Mismatch(description: "the index \(name) is not ready") }
            return note("\(name) is not ready")
        }
        let now = try larder.engine().now()
        var expected: [(word: String, key: String)] = []
        for (key, value) in model where value.deadline.map({ now < $0 }) ?? true {
            let words = value.words.filter { bounds[0] <= $0 && $0 <= bounds[1] }
            if let word = backward ? words.max() : words.min() { expected.append((word, key)) }
        }
        expected.sort { backward ? $0 > $1 : $0 < $1 }
        note("compare \(name) \(bounds) \(backward)")
        guard found == expected.map(\.key) else {
            throw Mismatch(
                description: "\(name) \(bounds) backward \(backward): found \(found), expected \(expected)")
        }
    }

    private func checkHints() throws {
        let missing = try books().missingHints()
        guard missing.isEmpty else { throw Mismatch(description: "no hints for \(missing)") }
    }

    /// Every hint that a query does not confirm is removed after the query has reported it.
    private func checkStaleHintsGo() throws {
        let books = try books()
        larder.time.advance(milliseconds: 3_600_000)
        model = model.filter { $0.value.deadline == nil }
        try books.flush()
        try larder.maintain()
        for name in indexes { _ = try books.keys(withWordsFrom: "", through: "z", in: name) }
        try books.finishIndexes()
        let expected = model.values.reduce(0) { $0 + Set($1.words).count }
        let found = try books.hintCountInLevelDB()
        guard found == expected * indexes.count else {
            throw Mismatch(description: "\(found) hints instead of \(expected * indexes.count)")
        }
    }
}
