/// The tables of docs/Origins.md.
struct FleetReport {
    let inputs: FleetInputs

    var text: String {
        (inputs.machines.map(fleet) + [reach]).joined(separator: "\n") + "\n"
    }

    // MARK: One fleet

    private func fleet(_ machines: Int) -> String {
        let model = FleetModel(inputs)
        let rows = FleetMode.allCases.flatMap { mode in
            (mode == .none ? [false] : [false, true]).map { withDisk in
                row(mode, withDisk, model.figures(mode, machines: machines, withDisk: withDisk))
            }
        }
        return "**\(Self.number(Double(machines))) machines**\n\n"
            + Self.table(
                [
                    "", "tier", "hits %", "GET/s", "pushes/s", "pushes/s a machine", "tracking MiB a node",
                    "connections a node", "cores a node", "no read is older than", "the origin can take it",
                ], rows)
    }

    private func row(_ mode: FleetMode, _ withDisk: Bool, _ figures: FleetFigures) -> [String] {
        [
            mode.title, mode == .none ? "" : withDisk ? "with disk" : "memory",
            mode == .none ? "" : Decimal.text(figures.hitRatio * 100, digits: 1), Self.number(figures.gets),
            Self.number(figures.pushes), Self.number(figures.pushesPerMachine), Self.number(figures.trackingMiB),
            Self.number(figures.connections), Decimal.text(figures.cores, digits: 2), Self.time(figures.bound),
            figures.broken(inputs).map { "no: \($0)" } ?? "yes",
        ]
    }

    // MARK: How far each mode goes

    static let writeShares = [0.000_001, 0.000_01, 0.000_1, 0.001, 0.01]

    private var reach: String {
        let models = Self.writeShares.map { share in
            var inputs = inputs
            inputs.writeShare = share
            return FleetModel(inputs)
        }
        let rows = FleetMode.kept.flatMap { mode in
            [false, true].map { withDisk in
                [mode.title, withDisk ? "with disk" : "memory"]
                    + models.map { model in
                        let (machines, broken) = model.reach(mode, withDisk: withDisk)
                        return Self.number(Double(machines)) + (broken.map { ", \($0)" } ?? " and more")
                    }
            }
        }
        return "**The largest fleet (machines) by mode and share of writes, and the limit that stops a larger one**\n\n"
            + Self.table(["", "tier"] + Self.writeShares.map { "1 in \(Self.number(1 / $0))" }, rows)
    }

    // MARK: Texts

    static func table(_ titles: [String], _ rows: [[String]]) -> String {
        let rule = titles.indices.map { $0 == 0 ? "---" : "---:" }
        return ([titles, rule] + rows).map { "| " + $0.joined(separator: " | ") + " |\n" }.joined()
    }

    /// Formats a number with three significant digits, the accuracy of the model, and thousands separators.
    static func number(_ value: Double) -> String {
        guard value > 0 else { return "0" }
        if value < 9.95 { return Decimal.text(value, digits: value < 0.0995 ? 3 : value < 0.995 ? 2 : 1) }
        var scale = 1.0
        while value / scale >= 1000 { scale *= 10 }
        let whole = "\(Int((value / scale).rounded() * scale))"
        var text = ""
        for (index, digit) in whole.reversed().enumerated() {
            if index > 0, index % 3 == 0 { text = "," + text }
            text = String(digit) + text
        }
        return text
    }

    private static func time(_ milliseconds: Double) -> String {
        if milliseconds < 10_000 { return "\(Int(milliseconds.rounded())) ms" }
        return "\(Decimal.text(milliseconds / 1000, digits: 0)) s"
    }
}
