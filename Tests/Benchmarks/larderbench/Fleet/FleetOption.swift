/// An option of `larderbench fleet`: one input of the model.
struct FleetOption: Sendable {
    let name: String
    let value: String
    let summary: String
    let take: @Sendable (inout FleetInputs, String) throws(BenchError) -> Void

    /// Add a row to add an option.
    static let all: [FleetOption] = [
        FleetOption(
            name: "--machines", value: "LIST", summary: "fleets to look at (default 10,1000,100000)", take: takeMachines
        ),
        whole("--keys", "keys of the database (default 1000000)", 1...1_000_000_000, \.keys),
        real("--zipf", "the exponent of the keys' popularity (default 1)", 0...3, \.readExponent),
        real("--write-zipf", "the same of what is written; 0: all keys alike (default 1)", 0...3, \.writeExponent),
        real("--rate", "operations of one machine in a second (default 100)", 0.001...10_000_000, \.rate),
        real("--write-share", "the share of them that are writes (default 0.00001)", 0...0.99, \.writeShare),
        whole("--value-bytes", "the size of a value (default 1024)", 1...536_870_912, \.valueBytes),
        whole("--memory", "MiB of a machine's memory tier (default 256)", 1...16_777_216, \.memoryMiB),
        whole("--disk", "GiB of a machine's disk (default 16)", 1...1_048_576, \.diskGiB),
        real("--lifetime", "seconds, for plain lifetimes (default 60)", 0.001...1_000_000_000, \.lifetime),
        real("--heartbeat", "milliseconds between heartbeats (default 250)", 1...3_600_000, \.heartbeat),
        real("--heartbeat-limit", "for how long one may go unanswered (default 500)", 1...3_600_000, \.heartbeatLimit),
        whole("--rack", "machines that share a relay (default 40)", 1...1_000_000, \.rack),
        whole("--nodes", "primaries of the origin (default 16)", 1...1000, \.nodes),
        real("--get-cost", "microseconds of a node for a GET or SET (default 9)", 0...1_000_000, \.getCost),
        real("--track-cost", "and for tracking it (default 1.4)", 0...1_000_000, \.trackCost),
        real("--push-cost", "for an invalidation that it sends (default 4)", 0...1_000_000, \.pushCost),
        real("--ping-cost", "for a PING (default 9)", 0...1_000_000, \.pingCost),
        real("--pair-bytes", "bytes there for a tracked key and client (default 50)", 0...100_000, \.trackedPairBytes),
        whole("--table-max", "tracking-table-max-keys of a node (default 1000000)", 0...1_000_000_000_000, \.tableMax),
        real("--core-max", "the share of its core that a node may use (default 0.7)", 0.01...1, \.coreMax),
        whole("--connections-max", "connections that a node takes (default 10000)", 1...10_000_000, \.connectionsMax),
        real("--tracking-max", "MiB that tracking may take of a node (default 1024)", 0...16_777_216, \.trackingMiBMax),
    ]

    private static func whole(
        _ name: String, _ summary: String, _ range: ClosedRange<Int>,
        _ input: any WritableKeyPath<FleetInputs, Int> & Sendable
    ) -> FleetOption {
        FleetOption(name: name, value: "N", summary: summary) { (inputs, value) throws(BenchError) in
            guard let number = Int(value), range.contains(number) else {
                throw BenchError("\(name) \(value): it is a number from \(range.lowerBound) to \(range.upperBound)")
            }
            inputs[keyPath: input] = number
        }
    }

    private static func real(
        _ name: String, _ summary: String, _ range: ClosedRange<Double>,
        _ input: any WritableKeyPath<FleetInputs, Double> & Sendable
    ) -> FleetOption {
        FleetOption(name: name, value: "X", summary: summary) { (inputs, value) throws(BenchError) in
            guard let number = Double(value), range.contains(number) else {
                throw BenchError("\(name) \(value): it is a number from \(range.lowerBound) to \(range.upperBound)")
            }
            inputs[keyPath: input] = number
        }
    }

    @Sendable private static func takeMachines(_ inputs: inout FleetInputs, _ value: String) throws(BenchError) {
        inputs.machines = []
        for word in value.split(separator: ",", omittingEmptySubsequences: false) {
            guard let count = Int(word), (1...100_000_000).contains(count) else {
                throw BenchError("--machines \(value): '\(word)' is no number from 1 to 100000000")
            }
            inputs.machines.append(count)
        }
    }

    static let help: String =
        """
        Usage: larderbench fleet [OPTIONS]
        What larders of a fleet before one origin give and cost, by the model of docs/Origins.md, as tables in Markdown.

        \(all.map { OptionHelp.line("\($0.name) \($0.value)", $0.summary) }.joined(separator: "\n"))
        \(OptionHelp.line("--help", "print this help"))

        Exit codes: 0 done, 2 usage.

        """
}

extension FleetInputs {
    /// - Returns: nil if the user asked for the help.
    static func parsed(_ words: some Collection<String>) throws(BenchError) -> FleetInputs? {
        var inputs = FleetInputs()
        var rest = Array(words)[...]
        while let word = rest.popFirst() {
            if word == "--help" || word == "-h" { return nil }
            guard let option = FleetOption.all.first(where: { $0.name == word }) else {
                throw BenchError("unknown option \(word)")
            }
            guard let value = rest.popFirst(), !value.isEmpty else { throw BenchError("\(word) needs a value") }
            try option.take(&inputs, value)
        }
        return inputs
    }
}
