import Foundation
import Larder
import LarderPlatform
import LarderTestSupport
import Testing

@Suite struct ConcurrencyTests {
    let work: Workspace

    init() throws { work = try Workspace() }

    /// Runs `body` on several threads at once, waits for all, and fails if any of them threw.
    private func inParallel(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) {
        let errors = Recorder<String>()
        let threads = (0..<count).map { index in
            WorkThread(name: "test") {
                do {
                    try body(index)
                } catch {
                    errors.add("\(error)")
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(errors.all == [])
    }

    @Test func everyThreadReadsItsOwnWrites() throws {
        let cache = try work.cache(policy: .never)
        let wrong = Recorder<String>()
        inParallel(4) { thread in
            for index in 0..<300 {
                let key = "\(thread):\(index % 20)"
                try cache.set(Reader("\(index)"), forKey: key)
                let found = try cache.value(Reader.self, forKey: key)
                if found != Reader("\(index)") { wrong.add("\(key) \(index) \(String(describing: found))") }
                if index % 7 == 0 {
                    try cache.remove(key)
                    if try cache.contains(key) { wrong.add("\(key) is still there") }
                }
                if index % 50 == 0 {
                    _ = try cache.entries(of: Reader.self, EntryOptions(prefix: "\(thread):")).values()
                }
            }
        }
        #expect(wrong.all == [])
    }

    @Test func readersNeverSeeAPartlyAppliedBatch() throws {
        // One writer transfers money between accounts in batches; readers always see the same sum.
        let cache = try work.cache(policy: .never)
        let accounts = (0..<10).map { "account \($0)" }
        try cache.set(Dictionary(uniqueKeysWithValues: accounts.map { ($0, 100) }))
        let wrong = Recorder<String>()
        let seed = testSeed()
        inParallel(4) { thread in
            var random = SeededGenerator(seed: seed &+ UInt64(thread))
            for _ in 0..<200 {
                if thread == 0 {
                    let two = Array(accounts.shuffled(using: &random).prefix(2))
                    let amounts = try cache.values(Int.self, forKeys: two, notFound: 0)
                    try cache.set([two[0]: amounts[0] - 1, two[1]: amounts[1] + 1])
                } else if thread == 1 {
                    let sum = try cache.snapshot().entries(of: Int.self).values().reduce(0, +)
                    if sum != 1_000 { wrong.add("snapshot \(sum)") }
                } else {
                    let sum = try cache.values(Int.self, forKeys: accounts, notFound: 0).reduce(0, +)
                    if sum != 1_000 { wrong.add("values \(sum)") }
                }
            }
        }
        #expect(wrong.all == [])
    }

    @Test func concurrentOpeningClosingAndDeletingThrowsOnlyExpectedErrors() throws {
        // In any interleaving, each call gets a result or an error that explains it.
        let directory = work.directory
        let options = work.options()
        let unexpected = Recorder<String>()
        let expected: Set<LarderError.Code> = [.closed, .deleted, .purged, .noSuchDatabase]
        inParallel(4) { thread in
            for round in 0..<40 {
                do throws(LarderError) {
                    let name = "db\(round % 3)"
                    let cache = try Cache(named: name, policy: .high, directory: directory, options: options)
                    try cache.set(Reader("x"), forKey: "k")
                    _ = try cache.value(Reader.self, forKey: "k")
                    switch (thread + round) % 4 {
                    case 0: try Cache.delete(named: name, directory: directory)
                    case 1: cache.close()
                    case 2: try cache.removeAll()
                    default: _ = try cache.count()
                    }
                } catch {
                    if !expected.contains(error.code) { unexpected.add("\(error.code) \(error)") }
                }
            }
        }
        #expect(unexpected.all == [])
        _ = try Cache.deleteAll(directory: directory)
        #expect(try Cache.databases(in: directory) == [])
    }
}
