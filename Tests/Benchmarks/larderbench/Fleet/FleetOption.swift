import LarderServices

typealias FleetOption = OptionRow<FleetInputs>

extension FleetOption {
    static var table: OptionTable<FleetInputs> { OptionTable("larderbench fleet", all) }

    /// Add a row to add an option: an input of the model.
    private static var all: [FleetOption] {
        [
            FleetOption(
                "--machines", "LIST", "numbers of machines to compute (default 10,1000,100000)", take: takeMachines),
            whole("--keys", "keys of the database (default 1000000)", 1...1_000_000_000, \.keys),
            real("--zipf", "the exponent of the keys' popularity (default 1)", 0...3, \.readExponent),
            real("--write-zipf", "the same for writes; 0: all keys equally often (default 1)", 0...3, \.writeExponent),
            real("--rate", "operations of one machine per second (default 100)", 0.001...10_000_000, \.rate),
            real("--write-share", "the share of operations that are writes (default 0.00001)", 0...0.99, \.writeShare),
            whole("--value-bytes", "the size of a value in bytes (default 1024)", 1...536_870_912, \.valueBytes),
            whole("--memory", "MiB of a machine's memory tier (default 256)", 1...16_777_216, \.memoryMiB),
            whole("--disk", "GiB of a machine's disk (default 16)", 1...1_048_576, \.diskGiB),
            real(
                "--lifetime", "lifetime in seconds without notifications (default 60)", 0.001...1_000_000_000,
                \.lifetime),
            real("--heartbeat", "milliseconds between heartbeats (default 250)", 1...3_600_000, \.heartbeat),
            real(
                "--heartbeat-limit", "milliseconds until a heartbeat has failed (default 500)", 1...3_600_000,
                \.heartbeatLimit),
            whole("--rack", "machines that share a relay (default 40)", 1...1_000_000, \.rack),
            whole("--nodes", "primaries of the origin (default 16)", 1...1000, \.nodes),
            real("--get-cost", "CPU microseconds of a node for a GET or SET (default 9)", 0...1_000_000, \.getCost),
            real("--track-cost", "the same for tracking a GET (default 1.4)", 0...1_000_000, \.trackCost),
            real("--push-cost", "the same for sending an invalidation (default 4)", 0...1_000_000, \.pushCost),
            real("--ping-cost", "the same for a PING (default 9)", 0...1_000_000, \.pingCost),
            real(
                "--pair-bytes", "bytes of a node per tracked key and client (default 50)", 0...100_000,
                \.trackedPairBytes),
            whole(
                "--table-max", "tracking-table-max-keys of a node (default 1000000)", 0...1_000_000_000_000, \.tableMax),
            real("--core-max", "maximum share of a node's core (default 0.7)", 0.01...1, \.coreMax),
            whole(
                "--connections-max", "maximum connections of a node (default 10000)", 1...10_000_000, \.connectionsMax),
            real(
                "--tracking-max", "maximum MiB of a node's tracking table (default 1024)", 0...16_777_216,
                \.trackingMiBMax),
            FleetOption("--help", nil, ["print this help"], short: "-h") { inputs, _ in inputs.showsHelp = true },
        ]
    }

    private static func whole(
        _ name: String, _ summary: String, _ range: ClosedRange<Int>,
        _ input: any WritableKeyPath<FleetInputs, Int> & Sendable
    ) -> FleetOption {
        FleetOption(name, "N", summary) { $0[keyPath: input] = try $1.number(range) }
    }

    private static func real(
        _ name: String, _ summary: String, _ range: ClosedRange<Double>,
        _ input: any WritableKeyPath<FleetInputs, Double> & Sendable
    ) -> FleetOption {
        FleetOption(name, "X", summary) { $0[keyPath: input] = try $1.real(range) }
    }

    @Sendable private static func takeMachines(_ inputs: inout FleetInputs, _ value: OptionValue) throws {
        inputs.machines = []
        for word in value.text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let count = Int(word), (1...100_000_000).contains(count) else {
                throw value.error("'\(word)' must be a number from 1 to 100000000")
            }
            inputs.machines.append(count)
        }
    }

    static var help: String {
        """
        Usage: larderbench fleet [OPTIONS]
        Prints the hit ratios and costs of a fleet of larders with one origin as Markdown tables: see docs/Origins.md.

        \(helpText(all))

        Exit codes: 0 success, 2 wrong usage.

        """
    }
}

extension FleetInputs {
    /// - Returns: nil if the user asked for the help.
    static func parsed(_ words: some Collection<String>) throws(BenchError) -> FleetInputs? {
        var inputs = FleetInputs()
        try FleetOption.table.parse(Array(words), into: &inputs)
        return inputs.showsHelp ? nil : inputs
    }
}
