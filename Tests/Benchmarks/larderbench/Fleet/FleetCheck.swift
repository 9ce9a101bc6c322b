/// The model and the simulation side by side, in fleets that can be simulated machine by machine.
struct FleetCheck {
    struct Row {
        let mode: FleetMode
        let withDisk: Bool
        let machines: Int
    }

    static let machines = [10, 200]
    /// All modes for both kinds of tiers.
    static let rows = machines.flatMap { machines in
        [
            Row(mode: .tracking, withDisk: false, machines: machines),
            Row(mode: .broadcast, withDisk: true, machines: machines),
            Row(mode: .lifetimes, withDisk: false, machines: machines),
            Row(mode: .relay, withDisk: true, machines: machines),
            Row(mode: .relayByBroadcast, withDisk: false, machines: machines),
        ]
    }
    static let operations = 400_000

    /// Few keys, so that even the rarest are read within the run. Entries of one MiB, so that the memory tier holds 60.
    static let inputs: FleetInputs = {
        var inputs = FleetInputs()
        inputs.keys = 200
        inputs.valueBytes = (1 << 20) - inputs.entryBytes
        inputs.memoryMiB = 60
        inputs.writeShare = 0.002
        inputs.lifetime = 10
        inputs.rack = 10
        inputs.tableMax = 0
        return inputs
    }()

    static func simulated(_ row: Row) -> FleetSimulation.Outcome {
        var simulation = FleetSimulation(inputs, row.mode, machines: row.machines, withDisk: row.withDisk)
        return simulation.run(operationsPerMachine: operations / row.machines)
    }

    static func computed(_ row: Row) -> FleetFigures {
        FleetModel(inputs).figures(row.mode, machines: row.machines, withDisk: row.withDisk)
    }

    /// The table of the docs page. Each cell has the model's figure, followed by the simulation's.
    static var text: String {
        let lines = rows.map { row in
            let (model, simulation) = (computed(row), simulated(row))
            let percents = [model.hitRatio, simulation.hitRatio].map { Decimal.text($0 * 100, digits: 1) }
            return [
                "\(row.machines)", row.mode.title, row.withDisk ? "with disk" : "memory",
                percents.joined(separator: " / "), pair(model.gets, simulation.gets),
                pair(model.pushes, simulation.pushes), pair(model.trackedPairs, simulation.trackedPairs),
            ]
        }
        return FleetReport.table(["machines", "", "tier", "hits %", "GET/s", "pushes/s", "tracked pairs"], lines)
    }

    private static func pair(_ model: Double, _ simulation: Double) -> String {
        "\(FleetReport.number(model)) / \(FleetReport.number(simulation))"
    }
}
