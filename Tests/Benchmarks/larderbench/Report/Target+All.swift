/// The project's targets, computed from rows of the suites.
extension Target {
    static func all(_ options: BenchOptions) -> [Target] {
        gets + fetches + tags + sets + scripts + steady + threads + mixed + bystanders + embedded(options) + models
            + documents + fetching
            + start + memory + entries + churn + expiryLag(options) + scale(options)
            + hits
    }

    private static let ours = Contender.larderEverySecond.name

    private static var documents: [Target] {
        let (larder, sqlite) = (DocumentsSuite.larder, DocumentsSuite.sqlite)
        let stored = DocumentsSuite.storeTable
        return DocumentQuery.allCases.map {
            Target("\($0.rawValue), CPU / SQLite", $0.table, larder, sqlite, .processor, .most($0 == .range ? 1 : 0.5))
        } + [
            Target("a document stored with 3 indexes, CPU µs", stored(3), larder, .processor, .most(9)),
            Target("first query after 100,000 writes, ms", DocumentsSuite.firstTable, larder, .command, .most(5)),
            Target("delivery by a live query, ms", DocumentsSuite.deliveryTable, larder, .command, .most(1)),
        ]
            + [(1, 1.2), (1_000, 1.5)].map { count, limit in
                Target(
                    "a document stored with \(count) live queries, CPU / none", DocumentsSuite.liveTable,
                    DocumentsSuite.liveRow(count), DocumentsSuite.liveRow(0), .processor, .most(limit))
            }
    }

    private static var gets: [Target] {
        let redis = Contender.redisOff.name
        return [1, 16, 64].flatMap { pipeline in
            let table = Load.get(pipeline: pipeline).title
            let name = "GET P\(pipeline)"
            return [
                Target(
                    "\(name), CPU per op / \(redis)", table, ours, redis, .processor,
                    .most(pipeline == 1 ? 0.85 : 0.45)),
                Target(
                    "\(name), throughput / \(redis)", table, ours, redis, .rate, .least(pipeline == 1 ? 1 : 1.6)),
                Target("\(name), p99 / \(redis)", table, ours, redis, .p99, .most(1)),
            ]
        }
    }

    private static var fetches: [Target] {
        [1, 16, 64].map { pipeline in
            Target(
                "FETCH of fresh entries P\(pipeline), CPU per op / GET", Load.get(pipeline: pipeline).title,
                SocketSuite.fetchRow, ours, .processor, .most(1.1))
        }
    }

    private static var tags: [Target] {
        [1, 16, 64].map { pipeline in
            Target(
                "GET of entries with tags P\(pipeline), CPU per op / without", Load.get(pipeline: pipeline).title,
                Contender.larderTags.name, ours, .processor, .most(1.15))
        }
    }

    private static var scripts: [Target] {
        let redis = Contender.redisEverySecond.name
        return BenchScript.allCases.flatMap { script in
            [1, 16].map { pipeline in
                Target(
                    "\(script.rawValue) P\(pipeline), CPU per op / \(redis)",
                    Load.script(script, pipeline: pipeline).title, ours, redis, .processor, .most(1))
            }
        }
    }

    private static var sets: [Target] {
        let redis = Contender.redisEverySecond.name
        let redisAlways = Contender.redisAlways.name
        return [1, 16, 64].flatMap { pipeline in
            let table = Load.set(pipeline: pipeline).title
            let name = "SET everysecond P\(pipeline)"
            return [
                Target("\(name), CPU per op / \(redis)", table, ours, redis, .processor, .most(1)),
                Target("\(name), CPU per op until at rest / \(redis)", table, ours, redis, .processorAtRest, .none),
                Target(
                    "\(name), throughput / \(redis)", table, ours, redis, .rate, pipeline == 1 ? .none : .least(1.3)),
            ]
        }
            + [1, 16, 64].map { pipeline in
                Target(
                    "SET always P\(pipeline), throughput / \(redisAlways)", Load.set(pipeline: pipeline).title,
                    Contender.larderAlways.name, redisAlways, .rate, .least(1.2))
            }
    }

    private static var steady: [Target] {
        SteadySuite.pipelines.map { pipeline in
            Target(
                "SET everysecond P\(pipeline), going on, CPU per op / \(Contender.redisEverySecond.name)",
                SteadySuite.table(pipeline), ours, Contender.redisEverySecond.name, .processor, .most(1))
        }
    }

    private static var threads: [Target] {
        [Load.get(pipeline: 1), .get(pipeline: 16), .set(pipeline: 1), .set(pipeline: 16)].map { load in
            Target(
                "\(load.setPercent > 0 ? "SET" : "GET") P\(load.pipeline), CPU per op, 4 threads / 1", load.title,
                Contender.larderThreads.name, ours, .processor, .most(1.2))
        }
    }

    private static var mixed: [Target] {
        let redis = Contender.redisEverySecond.name
        return [
            Target("GET p99 under writes / \(redis)", MixedSuite.table, ours, redis, .p99, .most(1)),
            Target("GET longest under writes, ms", MixedSuite.table, ours, .longest, .most(20)),
        ]
    }

    private static var bystanders: [Target] {
        BystanderSuite.Command.allCases.map { command in
            Target(
                "longest wait beside a \(command.title) / \(Contender.redisEverySecond.name)",
                BystanderSuite.table(command),
                ours, Contender.redisEverySecond.name, .longest, .most(1))
        }
    }

    private static func embedded(_ options: BenchOptions) -> [Target] {
        typealias Suite = EmbeddedSuite
        return Suite.sizes(options).flatMap { bytes in
            [
                Target(
                    "embedded cold get \(bytes) B, time / LevelDB C", Suite.table(.firstGet, bytes), Suite.engine,
                    Suite.raw, .wall, .most(1.15)),
                Target(
                    "embedded cold get \(bytes) B, CPU / LevelDB C", Suite.table(.firstGet, bytes), Suite.engine,
                    Suite.raw, .processor, .none),
                Target(
                    "embedded get \(bytes) B without memory tier, time / LevelDB C", Suite.table(.get, bytes),
                    Suite.cold, Suite.raw, .wall, .most(1.15)),
                Target(
                    "embedded batched put \(bytes) B, time / LevelDB C", Suite.table(.batch1000, bytes), Suite.engine,
                    Suite.raw, .wall, .most(1.25)),
                Target(
                    "embedded batched put \(bytes) B, CPU / LevelDB C", Suite.table(.batch1000, bytes), Suite.engine,
                    Suite.raw, .processor, .none),
            ]
        }
    }

    private static var models: [Target] {
        [
            Target(
                "typed hot read, time / decoding alone", ModelSuite.hotTable, ModelSuite.cache, ModelSuite.coders,
                .wall, .most(0.1)),
            Target("typed hot read, µs", ModelSuite.hotTable, ModelSuite.cache, .wall, .most(0.5)),
        ]
    }

    private static var fetching: [Target] {
        [
            Target(
                "hot value(…, fetch:), CPU per op / value", FetchingSuite.hotTable, FetchingSuite.fetch,
                FetchingSuite.value, .processor, .most(1.1)),
            Target(
                "1000 tasks, one cold key, CPU per task / stored key", FetchingSuite.flightTable,
                FetchingSuite.cold, FetchingSuite.stored, .processor, .none),
        ]
            + [FetchingSuite.Warmed.ahead, .spread].map {
                Target(
                    "longest read while the origin takes a second, \($0.rawValue), ms", FetchingSuite.warmedTable,
                    $0.rawValue, .longest, .most(500))
            }
    }

    private static var start: [Target] {
        StartSuite.Ending.allCases.map { ending in
            let redis = Contender.redisEverySecond
            return Target(
                "start \(ending.rawValue) / \(redis.name)", StartSuite.table,
                StartSuite.row(.larderEverySecond, ending), StartSuite.row(redis, ending), .start, .most(0.1))
        }
    }

    private static var memory: [Target] {
        let larder = MemorySuite.larder
        return [
            Target(
                "resident memory after filling / \(Contender.redisOff.name)", MemorySuite.table,
                MemorySuite.afterFilling(larder), MemorySuite.afterFilling(.redisOff), .resident, .most(1)),
            Target(
                "resident memory after reading / \(Contender.redisOff.name)", MemorySuite.table,
                MemorySuite.afterReading(larder), MemorySuite.afterReading(.redisOff), .resident, .most(1)),
        ]
    }

    private static var entries: [Target] {
        [false, true].flatMap { deadlines in
            MemorySuite.valueSizes.map { bytes in
                Target(
                    "resident bytes per entry of \(bytes) B\(deadlines ? " with a deadline" : "")",
                    MemorySuite.entryTable, MemorySuite.row(MemorySuite.all, deadlines: deadlines),
                    MemorySuite.column(bytes), .most(deadlines ? 48 : 40))
            }
        }
    }

    private static var churn: [Target] {
        [
            Target(
                "churn, resident / live bytes after a day", ChurnSuite.table, ChurnSuite.larder.name,
                ChurnSuite.column(hour: 24), .most(1.15)),
            Target(
                "disk bytes written per byte accepted", DiskBytesSuite.table, ours, .diskWrites, .most(3)),
        ]
    }

    private static func expiryLag(_ options: BenchOptions) -> [Target] {
        options.countsOfScale.suffix(1).flatMap { others in
            let row = ExpiryLagSuite.row(ours, others)
            return [
                Target(
                    "`expired` events among \(others) entries", ExpiryLagSuite.table, row, .events,
                    .least(Double(ExpiryLagSuite.eventCount))),
                Target(
                    "p99.9 of `expired` events among \(others) entries, ms", ExpiryLagSuite.table, row, .p999,
                    .most(100)),
            ]
        }
    }

    private static func scale(_ options: BenchOptions) -> [Target] {
        typealias Figure = ScaleSuite.Figure
        let larder = ScaleSuite.larder.name
        return options.countsOfScale.suffix(1).flatMap { count in
            let column = Metric.entries(count)
            return [
                Target("SET over \(count) keys, CPU µs", Figure.set.table, larder, column, .most(4)),
                Target("longest SET over \(count) keys, ms", Figure.longest.table, larder, column, .most(100)),
                Target("memory per cold entry, \(count) keys, B", Figure.perEntry.table, larder, column, .most(4)),
            ]
        }
    }

    private static var hits: [Target] {
        HitRatioSuite.tables.map {
            Target("\($0) / SIEVE", $0, HitRatioSuite.tier, HitRatioSuite.sieve, .hitRatio, .least(1))
        }
            + HitRatioSuite.diskTables.map {
                Target("\($0) / LRU", $0, HitRatioSuite.disk, HitRatioSuite.leastRecent, .hitRatio, .least(1))
            }
    }
}
