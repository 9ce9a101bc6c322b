import Testing

@testable import larderbench

/// Tests of the formulas of docs/Origins.md: their limits, and their agreement with a fleet whose machines are
/// simulated.
@Suite struct FleetModelTests {
    private static func isNear(_ value: Double, _ expected: Double, _ share: Double = 1e-6) -> Bool {
        abs(value - expected) <= share * abs(expected) + 1e-12
    }

    // MARK: One entry

    @Test func anEntryThatNeverExpiresIsAlwaysAHit() {
        #expect(FleetModel.hitRatio(reads: 3, ends: 0) == 1)
        #expect(FleetModel.hitRatio(reads: 0, ends: 0) == 0)
        #expect(FleetModel.hitRatio(reads: 3, ends: 0, idle: 0) == 0)
        #expect(FleetModel.hitRatio(reads: 3, ends: 0, lifetime: 0) == 0)
    }

    @Test("the model agrees with known formulas in simple cases") func theModelAgreesWithKnownFormulas() {
        let near = Self.isNear
        // There is one miss, followed by as many hits as there are reads within the lifetime.
        #expect(near(FleetModel.hitRatio(reads: 2, ends: 0, lifetime: 5), 10.0 / 11, 1e-6))
        // A read hits if the key's previous operation was a read.
        #expect(near(FleetModel.hitRatio(reads: 2, ends: 3), 2.0 / 5, 1e-6))
        // A read hits if the previous read was within the idle time: 1 - e^-0.5.
        #expect(near(FleetModel.hitRatio(reads: 2, ends: 0, idle: 0.25), 0.393_469_340_287, 1e-6))
        // Additional causes of invalidation never improve the hit ratio.
        let all = FleetModel.hitRatio(reads: 2, ends: 0.5, lifetime: 3, idle: 2)
        #expect(all < FleetModel.hitRatio(reads: 2, ends: 0, lifetime: 3, idle: 2))
        #expect(all < FleetModel.hitRatio(reads: 2, ends: 0.5, idle: 2))
        #expect(all < FleetModel.hitRatio(reads: 2, ends: 0.5, lifetime: 3))
    }

    // MARK: Sums over keys

    @Test("grouping keys by popularity hardly changes the results of the model", arguments: [0, 0.7, 1, 1.3])
    func groupingKeysByRankHardlyChangesTheModel(exponent: Double) {
        var inputs = FleetInputs()
        inputs.keys = 30_000
        inputs.readExponent = exponent
        inputs.memoryMiB = 4
        inputs.writeShare = 0.001
        let (grouped, exact) = (FleetModel(inputs), FleetModel(inputs, isExact: true))
        for mode in FleetMode.allCases {
            let one = grouped.figures(mode, machines: 50, withDisk: false)
            let other = exact.figures(mode, machines: 50, withDisk: false)
            #expect(Self.isNear(one.hitRatio, other.hitRatio, 1e-3), "\(mode)")
            #expect(Self.isNear(one.gets, other.gets, 1e-3), "\(mode)")
            #expect(Self.isNear(one.pushes, other.pushes, 1e-3), "\(mode)")
            #expect(Self.isNear(one.trackedPairs, other.trackedPairs, 1e-3), "\(mode)")
        }
    }

    @Test("with the computed idle time, the memory tier is exactly full") func theMemoryTierIsExactlyFull() {
        var inputs = FleetInputs()
        inputs.memoryMiB = 16
        let model = FleetModel(inputs)
        let popularity = Popularity(keys: inputs.keys, readExponent: 1, writeExponent: 1)
        let present = { (key: Popularity.Group, idle: Double) in
            FleetModel.hitRatio(reads: 100 * key.read, ends: 0, idle: idle)
        }
        let idle = model.idleTime(capacity: inputs.memoryEntries, present)
        #expect(Self.isNear(popularity.sum { present($0, idle) }, inputs.memoryEntries))
        #expect(model.idleTime(capacity: 1e6, present) == .infinity)
    }

    // MARK: A fleet

    @Test("hits and requests of the model add up to all reads") func hitsAndRequestsAddUpToAllReads() {
        let inputs = FleetInputs()
        let model = FleetModel(inputs)
        for machines in inputs.machines {
            let count = Double(machines)
            let reads = count * inputs.rate * (1 - inputs.writeShare)
            #expect(Self.isNear(model.figures(.none, machines: machines, withDisk: false).gets, reads))
            for withDisk in [false, true] {
                let tracking = model.figures(.tracking, machines: machines, withDisk: withDisk)
                let broadcast = model.figures(.broadcast, machines: machines, withDisk: withDisk)
                #expect(Self.isNear(tracking.gets, reads * (1 - tracking.hitRatio), 1e-4))
                // A client is notified only of keys that it has requested before.
                #expect(tracking.pushes <= tracking.gets * (1 + 1e-9))
                #expect(tracking.pushes <= broadcast.pushes * (1 + 1e-9))
                #expect(tracking.hitRatio == broadcast.hitRatio)
                let relay = model.figures(.relay, machines: machines, withDisk: withDisk)
                #expect(relay.gets <= tracking.gets && relay.pushes <= tracking.pushes)
                #expect(relay.hitRatio == tracking.hitRatio && relay.bound == 2 * tracking.bound)
            }
        }
        #expect(model.figures(.tracking, machines: 10, withDisk: false).bound == 750)
        #expect(model.figures(.lifetimes, machines: 10, withDisk: false).bound == 60_000)
    }

    @Test func aFullTrackingTableSendsUnneededInvalidations() {
        var inputs = FleetInputs()
        let whole = FleetModel(inputs).figures(.tracking, machines: 100, withDisk: true)
        inputs.tableMax = 10_000
        let full = FleetModel(inputs).figures(.tracking, machines: 100, withDisk: true)
        #expect(Self.isNear(full.trackedKeys, 160_000, 1e-4))
        #expect(full.pushes > whole.pushes && full.hitRatio < whole.hitRatio)
        inputs.tableMax = 0
        #expect(FleetModel(inputs).figures(.tracking, machines: 100, withDisk: true) == whole)
    }

    @Test("the origin limits the number of machines in each mode") func theOriginLimitsTheNumberOfMachines() {
        let model = FleetModel(FleetInputs())
        for mode in FleetMode.kept {
            let (machines, broken) = model.reach(mode, withDisk: false)
            #expect(broken != nil && machines > 0)
            #expect(model.figures(mode, machines: machines, withDisk: false).broken(model.inputs) == nil)
            let larger = model.figures(mode, machines: machines + machines / 500 + 40, withDisk: false)
            #expect(larger.broken(model.inputs) == broken, "\(mode)")
        }
        var inputs = FleetInputs()
        inputs.nodes = 1
        inputs.rate = 10_000_000
        #expect(FleetModel(inputs).reach(.tracking, withDisk: false).machines == 0)
    }

    /// The accuracy stated in the docs: one percent of the reads, and five percent of the origin's load.
    @Test(arguments: FleetCheck.rows) func theSimulationAgreesWithTheFormulas(row: FleetCheck.Row) {
        let (model, simulation) = (FleetCheck.computed(row), FleetCheck.simulated(row))
        #expect(abs(model.hitRatio - simulation.hitRatio) < 0.01)
        // The smaller fleet makes only several hundred writes, so random deviations are larger.
        let share = row.machines > 10 ? 0.05 : 0.25
        #expect(Self.isNear(model.gets, simulation.gets, share), "\(model.gets) \(simulation.gets)")
        #expect(Self.isNear(model.pushes, simulation.pushes, share), "\(model.pushes) \(simulation.pushes)")
        #expect(Self.isNear(model.trackedPairs, simulation.trackedPairs, 0.05))
    }

    /// Makes sure that the modes differ: otherwise the comparison of model and simulation would prove nothing.
    @Test func hitRatiosOfTheModesDiffer() {
        for row in FleetCheck.rows where row.machines == 200 && row.mode != .lifetimes {
            let other = FleetModel(FleetCheck.inputs).figures(.lifetimes, machines: 200, withDisk: row.withDisk)
            #expect(abs(other.hitRatio - FleetCheck.computed(row).hitRatio) > 0.03)
        }
    }

    // MARK: The command line

    @Test("each input of the model has an option") func everyInputOfTheModelHasAnOption() throws {
        let inputs = try #require(
            try FleetInputs.parsed([
                "--machines", "7,8", "--keys", "9", "--zipf", "0.5", "--write-share", "0.25", "--nodes", "3",
                "--lifetime", "1.5",
            ]))
        #expect(inputs.machines == [7, 8] && inputs.keys == 9 && inputs.readExponent == 0.5)
        #expect(inputs.writeShare == 0.25 && inputs.nodes == 3 && inputs.lifetime == 1.5)
        #expect(try FleetInputs.parsed([String]()) == FleetInputs())
        #expect(try FleetInputs.parsed(["--help"]) == nil)
        for line in FleetOption.help.split(separator: "\n") { #expect(line.count <= 120) }
    }

    @Test(arguments: [
        ["--keys"], ["--keys", "0"], ["--keys", "many"], ["--machines", "10,"], ["--machines", "0"], ["--zipf", "-1"],
        ["--zipf", "nan"], ["--lifetime", "inf"], ["--write-share", "1"], ["--frob", "1"], ["word"],
    ])
    func invalidFleetOptionsAreRefused(words: [String]) {
        #expect(throws: BenchError.self) { try FleetInputs.parsed(words) }
    }
}
