import Testing

/// Tests of the violations that ``FleetJudge`` reports for a history, to the millisecond.
@Suite struct FleetJudgeTests {
    private static let judge = FleetJudge(bound: 750, limit: 2000)

    private static func history(_ reads: [(sent: Int64, version: Int)], doubts: [FleetHistory.Doubt] = [])
        -> FleetHistory
    {
        var history = FleetHistory()
        for version in 1...3 {
            let sent = Int64(version) * 1000
            history.writes.append(.init(key: "k", version: version, sent: sent, acknowledged: sent + 10))
        }
        history.reads = reads.map { read in
            .init(
                tier: 0, connection: 1, key: "k", sent: read.sent, answered: read.sent + 1,
                answer: .version(read.version))
        }
        history.doubts = doubts
        history.final = ["k": 3]
        return history
    }

    private static func kinds(_ history: FleetHistory) -> [FleetFinding.Kind] {
        judge.judge(history).findings.map(\.kind)
    }

    @Test("the staleness bound starts at the acknowledgement of a write")
    func theStalenessBoundStartsAtTheAcknowledgement() {
        // Version 2 was acknowledged at 2010.
        #expect(Self.kinds(Self.history([(2760, 1)])) == [])
        #expect(Self.kinds(Self.history([(2761, 1)])) == [.stale])
        #expect(Self.kinds(Self.history([(2761, 2)])) == [])
        #expect(Self.kinds(Self.history([(1761, 0)])) == [.stale])
        #expect(Self.judge.judge(Self.history([(2710, 1)])).worstStaleness == 700)
    }

    @Test func unacknowledgedWritesNeedNotBeVisible() {
        var history = Self.history([(5000, 1)])
        history.writes[1].acknowledged = nil
        history.writes[2].isDurable = false
        #expect(Self.kinds(history) == [])
        // An unacknowledged write may be visible.
        #expect(Self.kinds(Self.history([(3000, 3)])) == [])
    }

    @Test func readsOfValuesNotYetWrittenAreReported() {
        #expect(Self.kinds(Self.history([(2990, 3)])) == [.future])
        #expect(Self.kinds(Self.history([(5000, 4)])) == [.future])
    }

    @Test("a read is reported if it is older than the previous one on its connection")
    func readsOlderThanThePreviousOneAreReported() {
        #expect(Self.kinds(Self.history([(2100, 2), (2200, 1)])) == [.backwards])
        #expect(Self.kinds(Self.history([(2100, 2), (2200, 0)])).contains(.backwards))
        var history = Self.history([(2100, 2), (2200, 1)])
        history.reads[1].connection = 2
        #expect(Self.kinds(history) == [])
    }

    @Test("a fault of the origin excuses only the reads or writes that it affects")
    func faultsOfTheOriginExcuseOnlyTheOrigin() {
        let reads = [FleetHistory.Doubt(from: 2900, to: 3000, isAboutReads: true)]
        #expect(Self.kinds(Self.history([(2950, 1)], doubts: reads)) == [])
        #expect(Self.kinds(Self.history([(3740, 1)], doubts: reads)) == [])
        #expect(Self.kinds(Self.history([(3751, 1)], doubts: reads)) == [.stale])
        #expect(Self.kinds(Self.history([(2850, 1)], doubts: reads)) == [.stale])
        let writes = [FleetHistory.Doubt(from: 2150, to: 2160, isAboutReads: false)]
        #expect(Self.kinds(Self.history([(2100, 2), (2200, 1)], doubts: writes)) == [])
        #expect(Self.kinds(Self.history([(2170, 2), (2200, 1)], doubts: writes)) == [.backwards])
        #expect(Self.kinds(Self.history([(2950, 1)], doubts: writes)) == [.stale])
    }

    @Test func lostAcknowledgedWritesAreReported() {
        var history = Self.history([])
        history.final = ["k": 2]
        #expect(Self.kinds(history) == [.lost])
        history.writes[2].isDurable = false
        #expect(Self.kinds(history) == [])
    }

    @Test("a call that takes longer than the limit is reported as slow") func slowCallsAreReported() {
        var history = Self.history([(100, 0)])
        history.reads[0].answered = 2100
        #expect(Self.kinds(history) == [])
        history.reads[0].answered = 2101
        #expect(Self.kinds(history) == [.slow])
        history.reads[0].answer = .refused("-ORIGIN")
        #expect(Self.kinds(history) == [.slow])
        #expect(Self.judge.judge(history).longestCall == 2001)
    }
}
