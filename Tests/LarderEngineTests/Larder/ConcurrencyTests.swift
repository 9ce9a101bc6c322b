import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of operations that run on many threads. Their results must be consistent with one order of all operations.
@Suite struct ConcurrencyTests {
    /// The number of iterations of each loop.
    private static let steps = 400

    private func larder(_ configure: (inout EngineOptions) -> Void = { _ in }) throws -> TestLarder {
        try TestLarder {
            $0.backgroundMaintenance = true
            $0.maintenanceMilliseconds = 1
            $0.writeBufferBytes = 64 << 10
            configure(&$0)
        }
    }

    private static func number(_ record: Record?) -> Int { record.flatMap { Int($0.text) } ?? 0 }

    @Test func incrementsAreNeverLost() throws {
        for memory in [0, 16 << 20] {
            let larder = try larder { $0.memoryBytes = memory }
            let database = try larder.database()
            let keys = (0..<3).map { Key("counter\($0)") }
            onThreads(6) { thread in
                for step in 0..<Self.steps {
                    let key = keys[(thread + step) % keys.count]
                    _ = try? database.commit([key], loading: .records) { update in
                        let next = Array("\(Self.number(update.current(0)) + 1)".utf8)
                        next.withUnsafeBytes { update.put(0, payload: $0) }
                    }
                }
            }
            let sum = try keys.reduce(0) { $0 + Self.number(try database.get($1)) }
            #expect(sum == 6 * Self.steps)
            larder.close()
            #expect(try keys.reduce(0) { $0 + Self.number(try larder.database().get($1)) } == 6 * Self.steps)
        }
    }

    /// Every batch writes one number under all keys: a reader of two different numbers has seen half a batch.
    @Test func batchesAreVisibleCompletelyOrNotAtAll() throws {
        let larder = try larder()
        let database = try larder.database()
        let keys = (0..<8).map { Key("part\($0)") }
        let halves = Guarded(0)
        let isDone = Guarded(0)
        onThreads(5) { thread in
            if thread < 2 {
                for step in 0..<Self.steps {
                    let value = Array("\(thread):\(step)".utf8)
                    _ = try? database.commit(keys, loading: .none) { update in
                        for index in keys.indices { value.withUnsafeBytes { update.put(index, payload: $0) } }
                    }
                }
                isDone.with { $0 += 1 }
                return
            }
            while isDone.value < 2 {
                let seen: Set<String?>?
                switch thread {
                case 2:
                    let snapshot = try? database.snapshot()
                    seen = snapshot.map { snapshot in Set(keys.map { (try? snapshot.get($0))??.text }) }
                case 3:
                    seen = (try? database.contents()).map {
                        Set(keys.map { [contents = $0] key in contents["\(key)"] })
                    }
                default:
                    seen =
                        (try? database.update(keys, loading: true, now: database.now()) { update in
                            Set(keys.indices.map { update.current($0)?.text })
                        })?.0
                }
                if let seen, seen.count != 1 { halves.with { $0 += 1 } }
            }
        }
        #expect(halves.value == 0)
    }

    /// A writer reads its own writes, and no reader sees a key go back to an older value.
    @Test func readsSeeEarlierWritesAndNeverGoBack() throws {
        let larder = try larder { $0.memoryBytes = 200_000 }
        let database = try larder.database()
        let problems = Recorder<String>()
        let isDone = Guarded(0)
        onThreads(6) { thread in
            if thread < 3 {
                let key = Key("writer\(thread)")
                for step in 1...Self.steps {
                    _ = try? database.commit([key], loading: step % 2 == 0 ? .records : .none) { update in
                        Array("\(step)".utf8).withUnsafeBytes { update.put(0, payload: $0) }
                    }
                    let seen = Self.number((try? database.get(key)) ?? nil)
                    if seen != step { problems.add("writer \(thread) read \(seen) after \(step)") }
                }
                isDone.with { $0 += 1 }
                return
            }
            var last = [0, 0, 0]
            while isDone.value < 3 {
                for writer in 0..<3 {
                    let seen = Self.number((try? database.get(Key("writer\(writer)"))) ?? nil)
                    if seen < last[writer] { problems.add("\(last[writer]) was followed by \(seen)") }
                    last[writer] = seen
                }
            }
        }
        #expect(problems.all == [])
    }

    /// Transfers between accounts in two or more shards never change the sum, with any kind of read.
    @Test func concurrentTransfersNeverChangeTheSum() throws {
        let larder = try larder { $0.memoryBytes = 0 }
        let database = try larder.database()
        let accounts = (0..<10).map { Key("account\($0)") }
        try database.commit(accounts, loading: .none) { update in
            for index in accounts.indices { Array("100".utf8).withUnsafeBytes { update.put(index, payload: $0) } }
        }
        let wrong = Recorder<Int>()
        let seed = testSeed()
        onThreads(5) { thread in
            var random = SeededGenerator(seed: seed &+ UInt64(thread))
            for _ in 0..<Self.steps {
                if thread == 0 {
                    let sum =
                        (try? database.update(accounts, loading: true, now: database.now()) { update in
                            accounts.indices.reduce(0) { $0 + Self.number(update.current($1)) }
                        })?.0
                    if let sum, sum != 1000 { wrong.add(sum) }
                    continue
                }
                let pair = Array(accounts.shuffled(using: &random).prefix(2))
                let amount = Int.random(in: 1...30, using: &random)
                _ = try? database.commit(pair, loading: .records) { update in
                    let (from, to) = (Self.number(update.current(0)), Self.number(update.current(1)))
                    Array("\(from - amount)".utf8).withUnsafeBytes { update.put(0, payload: $0) }
                    Array("\(to + amount)".utf8).withUnsafeBytes { update.put(1, payload: $0) }
                }
            }
        }
        #expect(wrong.all == [])
        let sum = try database.contents().values.reduce(0) { $0 + (Int($1) ?? 0) }
        #expect(sum == 1000)
    }

    /// Concurrent writes are committed in groups, in the order in which they were applied.
    @Test func commitsAreGroupedAndOrdered() throws {
        let order = Recorder<UInt64>()
        final class Observer: CommitObserver {
            let order: Recorder<UInt64>
            init(_ order: Recorder<UInt64>) { self.order = order }
            func commitsDecided(upTo sequence: UInt64, failure: LarderError?) { order.add(sequence) }
        }
        let larder = try larder { $0.durability = .always }
        let database = try larder.database()
        let pipeline = try larder.engine().pipeline
        let observer = Observer(order)
        pipeline.add(observer: observer)
        let before = try larder.engine().statistics.commitGroups.read()
        let unitsBefore = try larder.engine().statistics.commitUnits.read()
        onThreads(8) { thread in
            for step in 0..<100 { _ = try? database.put("\(thread)", "\(step)") }
        }
        let groups = try larder.engine().statistics.commitGroups.read() - before
        let units = try larder.engine().statistics.commitUnits.read() - unitsBefore
        #expect(units == 800)
        #expect(groups <= units)
        #expect(order.all == order.all.sorted())
        #expect(Set(order.all).count == order.all.count)
        for thread in 0..<8 { #expect(try database.value("\(thread)") == "99") }
        pipeline.remove(observer: observer)
    }

    /// Some commits fail. A counter must then equal the number of acknowledged increments.
    @Test func failingCommitsRollBackExactlyTheRefusedWrites() throws {
        let calls = Guarded(0)
        let larder = try larder {
            $0.beforeCommit = { () throws(LarderError) in
                let fails = calls.with { calls in
                    calls += 1
                    return calls % 7 == 0
                }
                if fails { throw LarderError(.io, "told to fail", operation: "test") }
            }
        }
        let database = try larder.engine().database("books")
        while errorCode({ try database.prepare(forWriting: true) }) != nil { nap() }
        let acknowledged = Guarded(0)
        let odd = Recorder<String>()
        onThreads(5) { thread in
            for _ in 0..<Self.steps {
                do throws(LarderError) {
                    if thread == 0 {
                        _ = try database.get(Key("counter"))
                        continue
                    }
                    try database.commit([Key("counter")], loading: .records) { update in
                        let next = Array("\(Self.number(update.current(0)) + 1)".utf8)
                        next.withUnsafeBytes { update.put(0, payload: $0) }
                    }
                    acknowledged.with { $0 += 1 }
                } catch {
                    if error.code != .commitFailed { odd.add("\(error)") }
                }
            }
        }
        #expect(odd.all == [])
        #expect(acknowledged.value > 0)
        #expect(acknowledged.value < 4 * Self.steps)
        while true {
            guard let counted = try? Self.number(database.get(Key("counter"))) else { continue }
            #expect(counted == acknowledged.value)
            break
        }
    }

    /// The disk fails and recovers while all threads read and write. No acknowledged write is lost.
    @Test func noAcknowledgedWriteIsLostByDiskFailuresUnderLoad() throws {
        let larder = try larder { $0.memoryBytes = 50_000 }
        let database = try larder.database()
        let acknowledged = Guarded<[String: Int]>([:])
        let odd = Recorder<String>()
        let isDone = Guarded(0)
        onThreads(6) { thread in
            if thread == 0 {
                while isDone.value < 3 {
                    database.durableState.store?.suspend(LarderError(.io, "pulled out", operation: "test"))
                    for _ in 0..<200 { sched_yield() }
                    _ = errorCode { try database.prepare(forWriting: true) }
                    for _ in 0..<500 { sched_yield() }
                }
                return
            }
            for step in 1...Self.steps {
                do throws(LarderError) {
                    switch thread {
                    case 1, 2, 3:
                        let key = "\(thread):\(step % 10)"
                        try database.put(key, "\(step)")
                        acknowledged.with { $0[key] = step }
                    case 4: _ = try database.contents()
                    default: _ = try database.snapshot().value("1:1")
                    }
                } catch {
                    let allowed: Set<LarderError.Code> = [.commitFailed, .writesSuspended, .invalidated]
                    if !allowed.contains(error.code) { odd.add("\(thread): \(error)") }
                }
            }
            if (1...3).contains(thread) { isDone.with { $0 += 1 } }
        }
        #expect(odd.all == [])
        larder.close()
        let contents = try larder.database().contents()
        for (key, step) in acknowledged.value {
            // A later write that was refused may have been stored anyway.
            #expect((contents[key].flatMap { Int($0) } ?? 0) >= step, "\(key)")
        }
    }

    /// Runs all operations concurrently, to find data races and deadlocks.
    @Test func concurrentOperationsThrowOnlyExpectedErrors() throws {
        let larder = try larder {
            $0.memoryBytes = 50_000
            $0.onDamage = .salvage
        }
        let engine = try larder.engine()
        let seed = testSeed()
        let odd = Recorder<String>()
        let time = larder.time
        onThreads(6) { thread in
            var random = SeededGenerator(seed: seed &+ UInt64(thread))
            for step in 0..<Self.steps {
                do throws(LarderError) {
                    let database = try engine.database(random.oneIn(2) ? "a" : "b")
                    try Self.anything(database, engine, time, &random, step)
                } catch {
                    let allowed: Set<LarderError.Code> = [
                        .purged, .deleted, .noSuchDatabase, .invalidated, .writesSuspended, .commitFailed,
                    ]
                    if !allowed.contains(error.code) { odd.add("\(error)") }
                }
            }
        }
        #expect(odd.all == [])
        larder.close()
        for database in try larder.engine().databases { _ = try database.contents() }
    }

    private static func anything(
        _ database: Database, _ engine: Engine, _ time: ManualTimeSource, _ random: inout SeededGenerator, _ step: Int
    ) throws(LarderError) {
        let key = "k\(Int.random(in: 0..<30, using: &random))"
        switch Int.random(in: 0..<60, using: &random) {
        case 0..<20: try database.put(key, "\(step)", durability: random.oneIn(10) ? .always : nil)
        case 20..<30: _ = try database.value(key)
        case 30..<35: try database.remove(key)
        case 35..<40:
            try database.put(key, "v", rule: .own(database.now() + Int64.random(in: -5...5000, using: &random)))
        case 40..<44: _ = try database.contents(EnumerationOptions(prefix: Array("k1".utf8), backward: random.oneIn(2)))
        case 44..<47: _ = try database.snapshot().contents()
        case 47: _ = try database.purge(.all(counting: random.oneIn(2)))
        case 48: _ = try database.purge(.prefix(Array("k1".utf8)))
        case 49: _ = try database.purge(.expired(merges: true))
        case 50: try database.setPolicy([.high, .never, .low].randomElement(using: &random) ?? .low)
        case 51: _ = try engine.deleteDatabase(database.name)
        case 52: database.durableState.store?.suspend(LarderError(.io, "pulled out", operation: "test"))
        case 53: engine.maintain()
        case 54: _ = try database.count(includingExpired: random.oneIn(2))
        case 55..<58: time.advance(milliseconds: Int64.random(in: 0...2000, using: &random))
        case 58: time.stepWall(milliseconds: Int64.random(in: -100_000...100_000, using: &random))
        default: engine.wakeMaintenance()
        }
    }
}
