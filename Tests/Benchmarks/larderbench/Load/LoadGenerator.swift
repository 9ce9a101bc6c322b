import CLarderUV
import LarderPlatform
import Synchronization

/// Sends a ``Load`` to a server over its Unix socket and measures the replies. Many connections share one thread and
/// never block. This is cheap enough that the server is the bottleneck.
///
/// Latency is the time from sending a batch until its reply was read. With a pace, each request is sent when it is due,
/// even if earlier requests are unanswered. So a pause of the server increases the latency of all requests during it.
///
/// Used by one thread, for one run.
final class LoadGenerator {
    /// The time without replies after which the run fails, in nanoseconds.
    private static let patience: UInt64 = 60_000_000_000

    let load: Load
    let scanner: ReplyScanner
    /// Sent once on each connection, before the first request.
    let greeting: [UInt8]?
    let requestBytesMax: Int
    let loop: UnsafeMutablePointer<uv_loop_t>
    private let parts: [Part]
    private let get: RequestTemplate
    private let sets: [(kind: Load.Kind, template: RequestTemplate, values: Values)]
    /// Chooses the keys of each part.
    private var keys: [KeyChooser]
    private var mix: SplitMix
    /// Records every SET; nil for none.
    private let ledger: Ledger?
    private var connections: [LoadConnection] = []
    private var report = LoadReport()
    private var failure: BenchError?
    /// Requests that may still be sent.
    private var remaining: Int
    /// The times at which sending starts and stops, in nanoseconds.
    private var begin: UInt64 = 0
    private var end: UInt64 = .max
    private var lastAnswer: UInt64 = 0
    private var requestsAtLastLook = 0
    private var pacedCount = 0
    private let timer: UnsafeMutablePointer<uv_timer_t>
    private let stop: StopFlag?

    /// A server that has all or some of the keys.
    struct Part {
        let socket: String
        /// The numbers of the keys; nil for all keys of the load.
        let keys: [Int]?
    }

    /// Lets another thread end a run.
    final class StopFlag: Sendable {
        private let flag = Atomic<Bool>(false)
        func set() { flag.store(true, ordering: .relaxed) }
        var isSet: Bool { flag.load(ordering: .relaxed) }
    }

    /// - Parameter stop: ends the run when set.
    convenience init(
        _ load: Load, socket: String, dialect: Dialect, stop: StopFlag? = nil, ledger: Ledger? = nil
    ) {
        self.init(load, parts: [Part(socket: socket, keys: nil)], dialect: dialect, stop: stop, ledger: ledger)
    }

    /// - Parameter parts: the servers, at least one; the clients are assigned to them in turn.
    init(_ load: Load, parts: [Part], dialect: Dialect, stop: StopFlag? = nil, ledger: Ledger? = nil) {
        self.load = load
        self.ledger = ledger
        self.parts = parts
        self.stop = stop
        scanner = ReplyScanner(dialect, valueBytes: load.valueBytes)
        get =
            load.script.map { .script($0, valueBytes: load.valueBytes) }
            ?? (load.readsWithFetch ? .fetch : .get(dialect))
        let kinds = load.kinds.isEmpty ? [Load.Kind(valueBytes: load.valueBytes)] : load.kinds
        sets = kinds.map { ($0, .set(dialect, $0, words: load.setWords), Values(bytes: $0.valueBytes)) }
        requestBytesMax = sets.reduce(get.bytes.count) { max($0, $1.template.bytes.count) }
        keys = parts.enumerated().map { index, part in
            KeyChooser(load.order, count: part.keys?.count ?? load.keys, seed: load.seed + UInt64(index))
        }
        mix = SplitMix(seed: ~load.seed)
        greeting =
            dialect == .null
            ? NullServer.greeting(
                requestBytes: (load.setPercent > 0 ? sets[0].template : get).bytes.count,
                valueBytes: load.setPercent > 0 ? nil : load.valueBytes) : nil
        if case .requests(let count) = load.limit { remaining = count } else { remaining = .max }
        loop = .allocate(capacity: 1)
        loop.initialize(to: uv_loop_t())
        timer = .allocate(capacity: 1)
        timer.initialize(to: uv_timer_t())
    }

    deinit {
        timer.deallocate()
        loop.deallocate()
    }

    static func run(
        _ load: Load, _ server: RunningServer, stop: StopFlag? = nil, ledger: Ledger? = nil
    ) throws(BenchError) -> LoadReport {
        try LoadGenerator(load, socket: server.socket, dialect: server.contender.dialect, stop: stop, ledger: ledger)
            .run()
    }

    func run() throws(BenchError) -> LoadReport {
        guard sets.allSatisfy({ $0.values.byteCount <= Values.bytesMax }) else {
            throw BenchError("values of the load are too long")
        }
        guard uv_loop_init(loop) == 0 else { throw BenchError("uv_loop_init failed") }
        startTimer()
        do throws(BenchError) {
            for index in 0..<load.clients {
                let part = index % parts.count
                connections.append(try LoadConnection(self, part: part, socket: parts[part].socket))
            }
            if let greeting { for connection in connections { try connection.send(greeting) } }
            let processor = Clocks.ownThread()
            try start()
            uv_run(loop, UV_RUN_DEFAULT)
            report.seconds = Double(Clocks.nanoseconds() - begin) / 1e9
            report.processorSeconds = Clocks.ownThread() - processor
        } catch {
            failure = failure ?? error
        }
        endLoop()
        if let failure { throw failure }
        return report
    }

    // MARK: The loop

    private func start() throws(BenchError) {
        begin = Clocks.nanoseconds()
        lastAnswer = begin
        if case .seconds(let seconds) = load.limit { end = begin + UInt64(seconds * 1e9) }
        guard load.pacePerSecond == nil else { return }
        for connection in connections {
            guard try connection.sendBatch(at: Clocks.nanoseconds()) else { break }
        }
    }

    /// Starts a timer: every millisecond for a paced load, otherwise only to detect that the server hangs.
    private func startTimer() {
        uv_timer_init(loop, timer)
        timer.withMemoryRebound(to: uv_handle_t.self, capacity: 1) {
            // `passUnretained` is safe: `endLoop` closes the handle before the generator is released.
            uv_handle_set_data($0, Unmanaged.passUnretained(self).toOpaque())
        }
        let interval: UInt64 = load.pacePerSecond == nil ? 20 : 1
        uv_timer_start(
            timer,
            { handle in
                guard let handle else { return }
                let data = handle.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { uv_handle_get_data($0) }
                guard let data else { return }
                Unmanaged<LoadGenerator>.fromOpaque(data).takeUnretainedValue().tick()
            }, interval, interval)
    }

    private func tick() {
        let now = Clocks.nanoseconds()
        if report.requests != requestsAtLastLook {
            requestsAtLastLook = report.requests
            lastAnswer = now
        }
        if Interruption.isRequested { return fail(.interrupted) }
        if stop?.isSet == true { end = min(end, now) }
        if connections.contains(where: { $0.unanswered > 0 }), now - lastAnswer > Self.patience {
            return fail(BenchError("the server has answered nothing for \(Self.patience / 1_000_000_000) s"))
        }
        guard let pace = load.pacePerSecond else { return }
        guard now < end else { return connectionRests() }
        let due = Int(Double(now - begin) / 1e9 * pace)
        do throws(BenchError) {
            while pacedCount < due {
                try connections[pacedCount % connections.count].sendOne(at: Clocks.nanoseconds())
                pacedCount += 1
            }
        } catch {
            fail(error)
        }
    }

    /// Ends the run if no connection is active and no more requests are due.
    func connectionRests() {
        if load.pacePerSecond != nil, Clocks.nanoseconds() < end { return }
        if connections.allSatisfy({ $0.unanswered == 0 }) { uv_stop(loop) }
    }

    func fail(_ error: BenchError) {
        failure = failure ?? error
        uv_stop(loop)
    }

    private func endLoop() {
        for connection in connections { connection.end() }
        timer.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { uv_close($0, nil) }
        uv_run(loop, UV_RUN_DEFAULT)
        uv_loop_close(loop)
        connections = []
    }

    // MARK: For connections

    /// Returns the number of requests that a connection may send now.
    func takeRequests(at now: UInt64) -> Int {
        guard now < end else { return 0 }
        let count = min(remaining, load.pipeline)
        remaining -= count
        return count
    }

    /// Writes the next request for a part to `place`, which has `requestBytesMax` bytes.
    /// - Returns: its length.
    func writeRequest(of part: Int, to place: UnsafeMutableRawPointer) -> Int {
        let number = keys[part].next()
        let key = load.firstKey + (parts[part].keys?[number] ?? number)
        let isSet = load.setPercent == 100 || (load.setPercent > 0 && mix.next() % 100 < UInt64(load.setPercent))
        guard isSet else {
            get.write(key: key, values: sets[0].values, to: place)
            return get.bytes.count
        }
        let set = sets[sets.count == 1 ? 0 : Int(truncatingIfNeeded: mix.next() % UInt64(sets.count))]
        ledger?.note(key: key, set.kind, at: Clocks.monotonic())
        set.template.write(key: key, values: set.values, to: place)
        return set.template.bytes.count
    }

    func note(_ reply: ReplyScanner.Reply, _ bytes: UnsafeRawBufferPointer, nanoseconds: UInt64) {
        report.requests += 1
        report.latency.add(nanoseconds)
        switch reply.kind {
        case .stored, .found: break
        case .missing: report.misses += 1
        case .error:
            report.errors += 1
            if report.firstError == nil {
                report.firstError = String(decoding: bytes.prefix(200), as: UTF8.self).filter { !$0.isNewline }
            }
        }
    }
}
