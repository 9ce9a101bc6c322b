import LarderTestSupport
import LarderVocabulary
import Testing

@Suite struct InvalidationTrackerTests {
    /// Compares the tracker with the list of all events. An outdated reply is never current. While the request runs,
    /// and few keys change, all other replies are.
    @Test(arguments: [3, 1_000]) func aReplyIsCurrentUnlessItsKeyHasChanged(keysMax: Int) {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<(TestSetting.rounds.number() ?? 20) {
            var tracker = InvalidationTracker<Int>(keysMax: keysMax)
            typealias Request = (began: UInt64, changed: Set<Int>, isLost: Bool, runs: Bool)
            var requests: [Request] = []
            for _ in 0..<200 {
                switch random.below(12) {
                case 0..<4: requests.append((tracker.begin(), [], tracker.epoch == nil, true))
                case 4..<6:
                    guard let index = requests.indices.filter({ requests[$0].runs }).randomElement(using: &random)
                    else { break }
                    tracker.end()
                    requests[index].runs = false
                case 6..<10:
                    let keys = (0..<random.below(3)).map { _ in random.below(5) }
                    tracker.changed(keys)
                    for index in requests.indices { requests[index].changed.formUnion(keys) }
                case 10 where random.oneIn(3):
                    tracker.changedAll()
                    for index in requests.indices { requests[index].changed.formUnion(0..<5) }
                case 11:
                    if random.oneIn(2) { tracker.lose() } else { tracker.listen() }
                    for index in requests.indices { requests[index].isLost = true }
                default: break
                }
                for request in requests {
                    for key in 0..<5 {
                        let isUnchanged = !request.isLost && !request.changed.contains(key)
                        let isCurrent = tracker.isCurrent(key, since: request.began)
                        #expect(isUnchanged || !isCurrent)
                        if request.runs, keysMax > 5 { #expect(isCurrent == isUnchanged) }
                    }
                }
            }
        }
    }

    @Test("a reply that is used after its request has ended is outdated if its key changed in between")
    func changesBetweenRequestsCount() {
        var tracker = InvalidationTracker<Int>(isListening: true)
        let began = tracker.begin()
        tracker.end()
        #expect(tracker.isCurrent(1, since: began))
        tracker.changed([1])
        _ = tracker.begin()
        #expect(!tracker.isCurrent(1, since: began))
    }
}
