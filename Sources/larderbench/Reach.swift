/// Ratios of medians between two rows, and what is aimed at.
struct Reach {
    struct Figure {
        let table: String
        let subject: String
        let metric: Metric
    }

    let what: String
    let numerator: Figure
    let denominator: Figure
    /// The ratio that is aimed at, and whether it is a most or a least.
    let aim: Double
    let isMost: Bool

    func ratio(_ results: Results) -> Double? {
        guard let top = results.median(numerator.table, numerator.subject, numerator.metric),
            let bottom = results.median(denominator.table, denominator.subject, denominator.metric), bottom > 0
        else { return nil }
        return top / bottom
    }

    func isReached(_ ratio: Double) -> Bool { isMost ? ratio <= aim : ratio >= aim }

    static func all(quick: Bool) -> [Reach] { socket + mixed + embedded(quick: quick) + start(quick: quick) }

    private static func pair(
        _ what: String, _ table: String, _ ours: String, _ theirs: String, _ metric: Metric, most: Double? = nil,
        least: Double? = nil
    ) -> Reach {
        Reach(
            what: what, numerator: Figure(table: table, subject: ours, metric: metric),
            denominator: Figure(table: table, subject: theirs, metric: metric), aim: most ?? least ?? 1,
            isMost: most != nil)
    }

    private static var socket: [Reach] {
        let ours = Contender.larderEverySecond.name
        var result: [Reach] = []
        for pipeline in [1, 16, 64] {
            let get = RedisBenchmark.Load(command: .get, pipeline: pipeline).title
            let redis = Contender.redisOff.name
            result += [
                pair(
                    "GET P\(pipeline), CPU per op / \(redis)", get, ours, redis, .processor,
                    most: pipeline == 1 ? 0.85 : 0.45),
                pair(
                    "GET P\(pipeline), throughput / \(redis)", get, ours, redis, .rate,
                    least: pipeline == 1 ? 1 : 1.6),
                pair("GET P\(pipeline), p99 / \(redis)", get, ours, redis, .p99, most: 1),
            ]
        }
        for pipeline in [1, 16, 64] {
            let set = RedisBenchmark.Load(command: .set, pipeline: pipeline).title
            let redis = Contender.redisEverySecond.name
            result.append(
                pair("SET everysecond P\(pipeline), CPU per op / \(redis)", set, ours, redis, .processor, most: 1))
            if pipeline > 1 {
                result.append(
                    pair("SET everysecond P\(pipeline), throughput / \(redis)", set, ours, redis, .rate, least: 1.3))
            }
        }
        for pipeline in [1, 16, 64] {
            result.append(
                pair(
                    "SET always P\(pipeline), throughput / \(Contender.redisAlways.name)",
                    RedisBenchmark.Load(command: .set, pipeline: pipeline).title, Contender.larderAlways.name,
                    Contender.redisAlways.name, .rate, least: 1.2))
        }
        for command in [RedisBenchmark.Command.get, .set] {
            result.append(
                pair(
                    "\(command.rawValue) P16, CPU per op, 4 threads / 1",
                    RedisBenchmark.Load(command: command, pipeline: 16).title, Contender.larderThreads.name, ours,
                    .processor, most: 1.2))
        }
        return result
    }

    private static var mixed: [Reach] {
        [
            pair(
                "GET p99 under writes / \(Contender.redisEverySecond.name)", MixedSuite.table,
                Contender.larderEverySecond.name, Contender.redisEverySecond.name, .p99, most: 1)
        ]
    }

    private static func embedded(quick: Bool) -> [Reach] {
        typealias Suite = EmbeddedSuite
        var result: [Reach] = []
        for valueBytes in quick ? [100] : [64, 100, 1024] {
            result += [
                pair(
                    "embedded cold get \(valueBytes) B, time / LevelDB C", Suite.table(.get, valueBytes), Suite.cold,
                    Suite.raw, .wall, most: 1.15),
                pair(
                    "embedded batched put \(valueBytes) B, time / LevelDB C", Suite.table(.batch1000, valueBytes),
                    Suite.cold, Suite.raw, .wall, most: 1.25),
            ]
        }
        result.append(
            pair(
                "typed read, time / decoding alone", ModelSuite.getTable, ModelSuite.cache, ModelSuite.coders, .wall,
                most: 0.1))
        return result
    }

    private static func start(quick: Bool) -> [Reach] {
        let table = StartSuite.table(quick: quick)
        let ours = Contender.larderEverySecond.name
        let redis = Contender.redisEverySecond.name
        return [
            pair("start / \(redis)", table, ours, redis, .start, most: 0.1),
            pair("resident memory after start / \(redis)", table, ours, redis, .resident, most: 1),
        ]
    }
}
