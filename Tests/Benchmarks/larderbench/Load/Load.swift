/// The work of the load generator: commands, sizes, keys, pipeline and duration.
struct Load: Hashable {
    /// The order of keys.
    enum KeyOrder: Hashable {
        /// All keys are equally likely, and are repeated.
        case uniform
        /// 0, 1, 2 …
        case sequential
        /// Every key once in a scattered order, then repeatedly in the same order.
        case scattered
        /// Key k with a probability proportional to 1 / (k + 1)^exponent.
        case zipf(exponent: Double)
    }

    enum Limit: Hashable {
        case seconds(Double)
        case requests(Int)
        /// The load runs until it is stopped.
        case none
    }

    /// A kind of SET, with the size of its values and their lifetime.
    struct Kind: Hashable {
        let valueBytes: Int
        var lifetimeMilliseconds: Int?

        /// The same lifetime in whole seconds, rounded up.
        var lifetimeSeconds: Int? { lifetimeMilliseconds.map { ($0 + 999) / 1000 } }
    }

    static let keyCount = 100_000

    /// The percentage of SETs; the other requests are GETs.
    var setPercent = 0
    /// Whether keys are read with FETCH instead of GET. For larderd only.
    var readsWithFetch = false
    /// The script that is called instead of GET. For RESP only.
    var script: BenchScript?
    var valueBytes = 64
    /// The kinds of SETs, which are equally frequent; empty if all have ``valueBytes`` and no lifetime.
    var kinds: [Kind] = []
    var clients = 50
    var pipeline = 1
    var keys = Load.keyCount
    /// The number of the first key.
    var firstKey = 0
    var order = KeyOrder.uniform
    /// Words added to each SET, such as `PXAT` and a time. For RESP only.
    var setWords: [String] = []
    /// The number of requests per second, of all clients together. Each request is sent at its time, even if earlier
    /// requests are unanswered. With nil, a client sends its next requests when it has the replies to the previous
    /// ones.
    var pacePerSecond: Double?
    var limit = Limit.none
    var seed: UInt64 = 1

    static func get(
        _ valueBytes: Int = 64, clients: Int = 50, pipeline: Int = 1, keys: Int = Load.keyCount,
        order: KeyOrder = .uniform
    ) -> Load {
        Load(valueBytes: valueBytes, clients: clients, pipeline: pipeline, keys: keys, order: order)
    }

    static func set(
        _ valueBytes: Int = 64, clients: Int = 50, pipeline: Int = 1, keys: Int = Load.keyCount,
        order: KeyOrder = .uniform
    ) -> Load {
        Load(setPercent: 100, valueBytes: valueBytes, clients: clients, pipeline: pipeline, keys: keys, order: order)
    }

    static func script(_ script: BenchScript, clients: Int = 50, pipeline: Int = 1) -> Load {
        var load = Load.get(clients: clients, pipeline: pipeline)
        load.script = script
        load.setPercent = script.setPercent
        load.firstKey = script.firstKey
        load.keys = script.keyCount
        return load
    }

    /// A load that stores every key once.
    static func fill(_ count: Int, valueBytes: Int, firstKey: Int = 0) -> Load {
        Load(
            setPercent: 100, valueBytes: valueBytes, clients: 4, pipeline: 64, keys: count, firstKey: firstKey,
            order: .sequential, limit: .requests(count))
    }

    /// This load with FETCH instead of GET.
    var withFetch: Load {
        var load = self
        load.readsWithFetch = true
        return load
    }

    /// The same load with a duration in seconds.
    func lasting(_ seconds: Double) -> Load {
        var load = self
        load.limit = .seconds(seconds)
        return load
    }

    /// The title of the load's table. FETCH is shown in the same table as GET.
    var title: String {
        let what = script.map { "\($0.rawValue) by EVALSHA" + ($0.setPercent > 0 ? ", and SET" : "") } ?? verb
        return "\(what) over the socket, \(valueBytes) B, \(clients == 1 ? "1 client" : "\(clients) clients"), "
            + "pipeline \(pipeline)"
    }

    private var verb: String {
        setPercent == 0 ? "GET" : setPercent == 100 ? "SET" : "\(setPercent) % SET"
    }
}

/// The result of a load.
struct LoadReport {
    /// Answered requests, including errors and misses.
    var requests = 0
    /// Answers that are errors.
    var errors = 0
    /// GETs that found nothing.
    var misses = 0
    /// The text of the first error.
    var firstError: String?
    /// The time from the first request to the last reply.
    var seconds = 0.0
    /// CPU seconds of the generator.
    var processorSeconds = 0.0
    var latency = LatencyHistogram()

    var rate: Double { seconds > 0 ? Double(requests) / seconds : 0 }

    func milliseconds(_ share: Double) -> Double { Double(latency.percentile(share)) / 1e6 }

    /// Throughput, latencies, and the generator's own cost.
    var figures: [Metric: Double] {
        [
            .rate: rate, .p50: milliseconds(0.5), .p99: milliseconds(0.99), .p999: milliseconds(0.999),
            .longest: Double(latency.maximum) / 1e6, .loadProcessor: processorSeconds * 1e6 / Double(max(requests, 1)),
        ]
    }

    /// - Throws: if a reply was an error, or a key that must exist was missing.
    func check(allowingMisses: Bool = false) throws(BenchError) {
        guard errors == 0 else {
            throw BenchError("\(errors) of \(requests) answers are errors, the first: \(firstError ?? "?")")
        }
        guard allowingMisses || misses == 0 else { throw BenchError("\(misses) of \(requests) GETs found nothing") }
        guard requests > 0 else { throw BenchError("nothing was answered") }
    }
}
