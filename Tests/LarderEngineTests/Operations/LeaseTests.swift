import TestSupport
import Testing

@testable import LarderEngine

/// What many leases, rests and waiters do to each other.
@Suite struct LeaseTests {
    private func lead(_ database: Database, _ key: Key, _ holder: LeaseHolder) throws -> UInt64 {
        let request = FetchRequest(key: key, holder: holder, askedAt: database.now())
        var ticket = CommitTicket.none
        var token: UInt64?
        _ = try database.fetch(request, now: database.now(), .mayBlock, ticket: &ticket) { answer, _ in
            if case .lead(let granted) = answer.state { token = granted }
        }
        return try #require(token)
    }

    @Test func manyLeasesDriveOutNoRest() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        let holder = LeaseHolder()
        // Keys of one shard.
        let keys = (0...).lazy.map { Key("k\($0)") }.filter { Shard.index($0.hash) == 0 }
        let resting = Array(keys.prefix(3))
        for key in resting {
            #expect(database.release(key, try lead(database, key, holder), .absent(milliseconds: 60_000)))
        }
        let others = try keys.dropFirst(3).prefix(LeaseContext.rememberedMax + 10).map { key in
            (key, try lead(database, key, holder))
        }
        #expect(database.release(others[0].0, others[0].1, .absent(milliseconds: 60_000)))
        for key in resting + [others[0].0] {
            #expect(throws: (any Error).self, "it rests") { try lead(database, key, holder) }
        }
    }

    /// Against a plain list, in which everybody who leaves is looked for.
    @Test func whoWaitsKeepsTheOrderWhoeverLeaves() {
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
                    // Some come again.
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
