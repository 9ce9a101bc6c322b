import LarderEngine
import LarderPlatform
import LarderTestSupport
import Testing

@testable import Larder

/// Tests, without an origin, which replies of an origin may be stored.
@Suite struct InvalidationEpochTests {
    /// A reply may be stored if its key has not changed since the request was sent, and no change is in progress.
    @Test func repliesAreStoredUnlessTheirKeysChange() {
        var random = SeededGenerator(seed: testSeed())
        let keys = (0..<3).map { [UInt8($0)] }
        for _ in 0..<(TestSetting.rounds.number() ?? 20) {
            let trust = InvalidationEpoch(isNotified: false) { nil }
            var (event, floor) = (0, 0)
            var changes: [[UInt8]: Int] = [:]
            var calls: [(ticket: InvalidationEpoch.Ticket, at: Int)] = []
            var writes: [(key: [UInt8], ticket: InvalidationEpoch.Ticket, at: Int)] = []
            func note(_ key: [UInt8]) {
                event += 1
                changes[key] = event
            }
            for _ in 0..<200 {
                let key = keys[random.below(keys.count)]
                switch random.below(10) {
                case 0..<3: calls.append((trust.beginCall(), event))
                case 3 where !calls.isEmpty:
                    calls.remove(at: random.below(calls.count))
                    trust.endCall()
                case 4:
                    _ = trust.changed([key], isNotified: random.oneIn(2))
                    note(key)
                case 5..<7:
                    let ticket = trust.beginWrite([key])
                    note(key)
                    writes.append((key, ticket, event))
                case 7..<9 where !writes.isEmpty:
                    let write = writes.remove(at: random.below(writes.count))
                    let isAlone =
                        changes[write.key] == write.at && floor <= write.at
                        && !writes.contains { $0.key == write.key }
                    #expect((trust.endWrite([write.key], write.ticket) != nil) == isAlone)
                    note(write.key)
                    trust.endCall()
                case 9 where random.oneIn(4):
                    trust.changedMany()
                    event += 1
                    floor = event
                default: break
                }
                for call in calls {
                    for key in keys {
                        let isUnchanged = changes[key] ?? 0 <= call.at && floor <= call.at
                        #expect(trust.isValid(call.ticket, key) == isUnchanged)
                        let isBeingWritten = writes.contains { $0.key == key }
                        #expect(trust.mayStore(call.ticket, key) == (isUnchanged && !isBeingWritten))
                    }
                }
            }
        }
    }

    @Test("if a key changes while its entry is being made stale, the entry is made stale again")
    func changesDuringSettlingCount() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        var options = EngineOptions()
        options.backgroundMaintenance = false
        let engine = try Engine.open(directory.path + "/larder", options: options, time: ManualTimeSource())
        defer { engine.shutdown() }
        let database = try engine.openDatabase("origin")
        let trust = InvalidationEpoch(isNotified: false) { nil }
        // Making the entry stale ends the key's lease, which wakes the client that waits for it.
        let isChanged = Guarded(false)
        let waiter = LeaseWaiter(LeaseHolder(), leaseMilliseconds: nil) {
            if !isChanged.value { _ = trust.changed([Array("k".utf8)]) }
            isChanged.value = true
        }
        for waiter in [nil, waiter] {
            var request = FetchRequest(key: Key("k"), holder: LeaseHolder(), askedAt: engine.now())
            request.waiter = waiter
            request.mayWait = waiter != nil
            var ticket = CommitTicket.none
            _ = try database.fetch(request, now: engine.now(), .mayBlock, ticket: &ticket) { _, _ in }
        }
        _ = trust.changed([Array("k".utf8)])
        try trust.applyNotifications(to: database)
        #expect(isChanged.value)
        #expect(!trust.isSettled(["k"]))
        try trust.applyNotifications(to: database)
        #expect(trust.isSettled(["k"]))
    }
}
