import LarderEngine
import LarderPlatform
import LarderTestSupport

/// Records runs of daemons, rebuilds the states left by accidents at many points, and judges what an engine recovers
/// from them.
package struct Machine {
    /// The kinds of accidents.
    package enum Mode: String, Sendable {
        /// SIGKILL at any point, with and without failing calls.
        case crash
        /// Power failures at any point, with ordered metadata and by POSIX alone (see ``RecordedDisk``).
        case power
    }

    package let mode: Mode
    /// The number of points judged per recorded run.
    package var pointsPerRun = 200
    /// The number of rounds of commands per daemon.
    package var rounds = 25
    /// Judges only this point of each run, to repeat a finding: an index as shown in messages.
    package var onlyPoint: Int?
    package var isVerbose = false
    /// Whether file calls fail: true for every run, false for no run, nil for every second run.
    package var hasFaults: Bool?
    /// The durability of every run; nil for a random one.
    package var durability: Durability?
    /// Whether the wall clock is never changed, neither while daemons run nor between them.
    package var hasSteadyClock = false

    /// The accidents to simulate.
    package var accidents: [RecordedDisk.Accident]

    package init(_ mode: Mode) {
        self.mode = mode
        accidents = mode == .crash ? [.kill] : [.orderedPowerCut, .strictPowerCut]
    }

    /// The results of a number of runs.
    package struct Report {
        package var runs = 0
        package var points: [RecordedDisk.Accident: Int] = [:]
        package var pointCount: Int { points.values.reduce(0, +) }
        /// The findings, each with instructions to repeat it.
        package var findings: [String] = []
        /// The number of calls that were made to fail, or at which a daemon was killed.
        package var hits = 0
        package var units = 0

        package init() {}

        package var text: String {
            let parts = RecordedDisk.Accident.allCases.compactMap { accident in
                points[accident].map { "\($0) \(accident.rawValue)" }
            }
            return "\(runs) runs, \(units) acknowledged units, \(hits) calls hit, "
                + "\(pointCount) points (\(parts.joined(separator: ", "))), \(findings.count) findings"
        }
    }

    /// Runs until the given number of points are judged.
    package func run(points: Int, seed: UInt64, each: (Report) -> Void = { _ in }) -> Report {
        var report = Report()
        var next = seed
        while report.pointCount < points {
            one(seed: next, &report)
            next &+= 1
            each(report)
            // Stops early, because findings with the same cause can fill pages.
            if report.findings.count >= 40 { break }
        }
        return report
    }

    private func one(seed: UInt64, _ report: inout Report) {
        report.runs += 1
        let isFaulty = hasFaults ?? (mode == .crash && seed % 2 == 0)
        let plan = RunPlan(
            seed: seed, kind: isFaulty ? .faults : .crash, rounds: rounds, steady: hasSteadyClock,
            durability: durability)
        let repeated = "LARDER_SEED=\(seed), \(mode.rawValue): \(plan.text)"
        do {
            let driver = try Driver(plan)
            do {
                try driver.run()
            } catch {
                let trail = driver.trail(isVerbose ? 4000 : 12)
                report.findings.append("\(repeated), in the run: \(error)\n    \(trail)")
            }
            report.hits += Int(driver.faults.hits)
            report.units += driver.history.units.joined().count { $0.outcome == .done }
            try judge(driver, repeated, &report)
        } catch {
            report.findings.append("\(repeated): \(error)")
        }
    }

    private func judge(_ driver: Driver, _ repeated: String, _ report: inout Report) throws {
        let trace = FileTrace(driver.faults.trace)
        let records = trace.records()
        guard !records.isEmpty else { return }
        var disk = RecordedDisk(trace, records)
        var random = SeededGenerator(seed: driver.plan.seed &+ 2)
        // Images with long values take long to write, so fewer points are judged.
        let count = driver.plan.hasLongValues ? max(1, pointsPerRun / 8) : pointsPerRun
        let cuts = (0..<count).map { _ in Int.random(in: 1...records.count, using: &random) }.sorted()
        let place = try TemporaryDirectory(inMemory: true)
        var whole = disk
        whole.advance(to: records.count)
        var unused = SeededGenerator(seed: 0)
        let differences = try whole.image(after: .kill, using: &unused).differences(from: driver.faults.root)
        guard differences.isEmpty else { throw Finding("the trace is wrong: \(differences)") }
        let before = report.findings.count
        for (index, cut) in cuts.enumerated() {
            // Stops early, because the findings of one run mostly have the same cause.
            if report.findings.count >= before + 2 { break }
            disk.advance(to: cut)
            var dice = SeededGenerator(seed: driver.plan.seed &+ UInt64(index) &* 7919)
            if let onlyPoint, onlyPoint != index { continue }
            let accident = accidents[index % accidents.count]
            report.points[accident, default: 0] += 1
            let path = "\(place.path)/\(index)"
            let next = cut < records.count ? records[cut].wallMilliseconds : .max / 4
            if let text = try point(driver, disk, records[cut - 1], next, accident, path, &dice) {
                report.findings.append(
                    "\(repeated), LARDER_POINT=\(index), \(accident.rawValue) after record \(cut) of \(records.count): "
                        + text + "\n    " + driver.trail(isVerbose ? 4000 : 12, before: records[cut - 1].end))
                if isVerbose {
                    // Keeps a copy of the disk image as it was before the engine opened it.
                    let kept = "/tmp/larder-\(driver.plan.seed)-\(index)"
                    var again = SeededGenerator(seed: driver.plan.seed &+ UInt64(index) &* 7919)
                    try FileSystem.removeTree(kept)
                    try disk.image(after: accident, using: &again).write(to: kept)
                    print("the disk is kept at \(kept)")
                    for record in records[max(0, cut - 200)..<cut] { print("  \(record.end): \(record.event)") }
                }
            }
            try FileSystem.removeTree(path)
        }
    }

    /// Simulates one accident: writes the disk image, opens the larder on it with a shifted clock, and checks what
    /// survived.
    /// - Returns: a description of the first broken durability promise; nil if all are kept.
    private func point(
        _ driver: Driver, _ disk: RecordedDisk, _ last: FileTrace.Record, _ next: Int64,
        _ accident: RecordedDisk.Accident, _ path: String, _ dice: inout SeededGenerator
    ) throws -> String? {
        let image = disk.image(after: accident, using: &dice)
        try image.write(to: path)
        let steps: [Int64] = [
            0, 0, 5, 5, 1000, 10_000, 7_200_000, 110_000_000, 2_000_000_000, -50, -30_000, -3_600_000,
        ]
        let step = max(hasSteadyClock ? 0 : .min, steps.randomElement(using: &dice) ?? 0)
        let crashCopy = CrashCopy(
            path, durability: driver.plan.durability, policy: driver.plan.policy, wall: last.wallMilliseconds + step)
        let probes = dice.oneIn(4)
        let notified = {
            "clock \(step) ms, set aside: \(crashCopy.setAside)\n    \(crashCopy.events.all.joined(separator: "\n    "))"
        }
        do {
            let found = try crashCopy.look(latest: next + driver.uncertainty, probe: probes)
            let asides = crashCopy.setAside.filter { accident == .kill || !$0.hasSuffix("-journal") }
            if !asides.isEmpty { return "databases were set aside; \(notified())" }
            let judge = Judge(history: driver.history, durability: driver.plan.durability)
            if case .broken(let text) = judge.judge(found, cut: last.end, power: accident != .kill) {
                return text + "\n    " + notified()
            }
            return nil
        } catch {
            return "\(error); \(notified())"
        }
    }
}
