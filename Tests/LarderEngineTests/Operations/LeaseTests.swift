import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests with many leases (each lets one client fetch a missing key), back-offs and waiters at the same time.
@Suite struct LeaseTests {
    private func fetch(_ database: Database, _ key: Key, _ holder: LeaseHolder) throws -> FetchAnswer.State? {
        let request = FetchRequest(key: key, holder: holder, askedAt: database.now())
        var ticket = CommitTicket.none
        var state: FetchAnswer.State?
        _ = try database.fetch(request, now: database.now(), .mayBlock, ticket: &ticket) { answer, _ in
            state = answer.state
        }
        return state
    }

    @Test func manyLeasesDoNotDiscardRetryBackOffs() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        let holder = LeaseHolder()
        // All keys are in one shard.
        let count = LeaseContext.rememberedMax + 10
        let keys = Array((0...).lazy.map { Key("k\($0)") }.filter { Shard.index($0.hash) == 0 }.prefix(count))
        for (number, key) in keys.enumerated() {
            guard case .lead(let token) = try fetch(database, key, holder) else {
                Issue.record("no client gets the lease of \(key)")
                return
            }
            guard number < 3 || number == keys.count - 1 else { continue }
            #expect(database.leases.release(key, token, .absent(milliseconds: 60_000)))
        }
        for key in keys[..<3] + keys.suffix(1) {
            #expect(try fetch(database, key, holder) == .absent(milliseconds: 60_000))
        }
    }

    /// Compares the queue with an array of waiters. Waiters that leave are removed from both.
    @Test func waitersKeepTheirOrderWhenOthersLeave() {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<50 {
            var queue = WaiterQueue()
            var expected: [LeaseWaiter] = []
            var gone: [LeaseWaiter] = []
            for _ in 0..<400 {
                switch Int.random(in: 0..<5, using: &random) {
                case 0:
                    let first = queue.popFirst()
                    #expect(first === expected.first)
                    first?.isListed = false
                    if !expected.isEmpty { gone.append(expected.removeFirst()) }
                case 1 where !expected.isEmpty:
                    let leaver = expected.remove(at: Int.random(in: expected.indices, using: &random))
                    leaver.isListed = false
                    queue.noteRemoved()
                    gone.append(leaver)
                default:
                    // Some waiters join the queue again.
                    let waiter =
                        gone.isEmpty || Bool.random(using: &random)
                        ? LeaseWaiter(LeaseHolder(), leaseMilliseconds: nil) {} : gone.removeLast()
                    waiter.isListed = true
                    queue.append(waiter)
                    expected.append(waiter)
                }
                #expect(queue.isEmpty == expected.isEmpty)
                #expect(queue.longest === expected.first)
            }
            #expect(Array(queue.all).map(ObjectIdentifier.init) == expected.map(ObjectIdentifier.init))
        }
    }
}
