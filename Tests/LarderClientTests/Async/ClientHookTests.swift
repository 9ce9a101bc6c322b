import LarderClient
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the client's hooks, and of its `run()`.
@Suite(.timeLimit(.minutes(10))) struct ClientHookTests {
    /// The form of ServiceLifecycle's protocol.
    protocol Service: Sendable {
        func run() async throws
    }

    private struct Down: Error {}
    @TaskLocal private static var request = "none"

    private let events = Recorder<CacheEvent>()
    private let measurements = Recorder<CacheMeasurement>()
    private let calls = Recorder<String>()

    private var options: ClientOptions {
        var options = ClientOptions(database: "books")
        options.onEvent = { [events] in events.add($0) }
        options.onMeasurement = { [measurements] in measurements.add($0) }
        options.onCall = { [calls] call in
            let name = "\(call.name) \(call.attributes["operation"] ?? "")"
            calls.add("\(name) begins in \(Self.request)")
            return { calls.add("\(name) ends with \($0.map { "\(type(of: $0))" } ?? "success")") }
        }
        return options
    }

    @Test func requestsAndFetchesAreReported() async throws {
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = try DaemonProcess(in: place)
        let client = try await LarderClient.connect(socketPath: daemon.socketPath, options: options)
        let cache = client.cache(of: String.self)
        await eventually { !events.all.isEmpty }
        #expect(events.all.first?.metadata == ["socket": daemon.socketPath, "database": "books"])
        #expect(events.all.first?.level == .info)
        calls.removeAll()
        measurements.removeAll()
        let found = try await Self.$request.withValue("request 7") { try await cache.value(forKey: "a") }
        #expect(found == nil)
        #expect(
            calls.all.prefix(2) == ["larder.client GET begins in request 7", "larder.client GET ends with success"])
        let first = try #require(measurements.all.first)
        #expect(first.name == "larder.client.duration" && first.kind == .duration && first.value > 0)
        #expect(first.dimensions == ["operation": "GET", "database": "books", "outcome": "ok"])
        try await cache.set("text", forKey: "a")
        calls.removeAll()
        measurements.removeAll()
        _ = try await client.command("INCR", "a")
        #expect(calls.all.last?.contains("ends with LarderClientError") == true, "\(calls.all)")
        #expect(measurements.all.last?.dimensions["outcome"] == "error")
        calls.removeAll()
        await #expect(throws: Down.self) { try await cache.value(forKey: "b") { throw Down() } }
        #expect(calls.all.contains("larder.fetch fetch ends with Down"), "\(calls.all)")
    }

    @Test func aLostConnectionIsReported() async throws {
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = try DaemonProcess(in: place)
        let client = try await LarderClient.connect(socketPath: daemon.socketPath, options: options)
        try await client.ping()
        daemon.kill()
        await eventually { events.all.contains { $0.level == .warning && $0.message.contains("was lost") } }
        client.close()
    }

    @Test func aClientWaitsForADaemonThatStartsLater() async throws {
        let place = try TemporaryDirectory(inMemory: true)
        let path = place.path + "/socket"
        var options = ClientOptions(timeoutMilliseconds: 100)
        options.startPatienceMilliseconds = 200
        let error = await #expect(throws: LarderClientError.self) {
            try await LarderClient.connect(socketPath: path, options: options)
        }
        #expect(error?.code == .noDaemon)
        options.startPatienceMilliseconds = 600_000
        let client = Task { [options] in try await LarderClient.connect(socketPath: path, options: options) }
        let blocking = Task {
            try await onThread { try BlockingLarderClient(socketPath: path, startPatienceMilliseconds: 600_000) }
        }
        try await Task.sleep(for: .milliseconds(300))
        let daemon = try DaemonProcess(in: place)
        try await client.value.ping()
        #expect(try await blocking.value.name == "0")
        #expect(throws: LarderClientError.self) {
            try BlockingLarderClient(socketPath: path, startPatienceMilliseconds: -1)
        }
        #expect(daemon.socketPath == path)
        options.startPatienceMilliseconds = -1
        await #expect(throws: LarderClientError.self) {
            try await LarderClient.connect(socketPath: path, options: options)
        }
    }

    @Test(arguments: ["shutdown", "cancellation", "close"])
    func theClientIsClosedWhenItsRunEnds(end: String) async throws {
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = try DaemonProcess(in: place)
        let client = try await LarderClient.connect(socketPath: daemon.socketPath)
        let run = Task { try await client.run() }
        try await client.ping()
        switch end {
        case "shutdown": client.shutdown()
        case "cancellation": run.cancel()
        default: client.close()
        }
        try await run.value
        let error = await #expect(throws: LarderClientError.self) { try await client.ping() }
        #expect(error?.code == .closed)
    }

    @Test func shutdownLetsRunningCallsEnd() async throws {
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = try DaemonProcess(in: place)
        let client = try await LarderClient.connect(socketPath: daemon.socketPath)
        let run = Task { try await client.run() }
        daemon.process.send(signal: SIGSTOP)
        let call = Task { try await client.ping() }
        try await Task.sleep(for: .milliseconds(50))
        client.shutdown()
        try await Task.sleep(for: .milliseconds(50))
        daemon.process.send(signal: SIGCONT)
        try await call.value
        try await run.value
        await #expect(throws: LarderClientError.self) { try await client.ping() }
    }

    @Test func shutdownDoesNotWaitForSubscribers() async throws {
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = try DaemonProcess(in: place)
        let options = ClientOptions(timeoutMilliseconds: 0)
        let client = try await LarderClient.connect(socketPath: daemon.socketPath, options: options)
        let cache = client.cache("0", of: String.self)
        let run = Task { try await client.run() }
        let seen = Guarded(0)
        let subscriber = Task { for try await _ in cache.changes(since: .now) { seen.value += 1 } }
        await eventually {
            try? await cache.set("1", forKey: "a")
            return seen.value > 0
        }
        // Let the subscriber wait at the daemon.
        try await Task.sleep(for: .milliseconds(100))
        client.shutdown()
        try await run.value
        try await subscriber.value
    }

    @Test func shutdownLetsClosuresEnd() async throws {
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = try DaemonProcess(in: place)
        let client = try await LarderClient.connect(socketPath: daemon.socketPath)
        let cache = client.cache("0", of: String.self)
        let run = Task { try await client.run() }
        let begun = Guarded(0)
        let closure = { @Sendable in
            begun.value += 1
            try await Task.sleep(for: .milliseconds(100))
        }
        let fetch = Task {
            try await cache.value(forKey: "fetched") { () -> String in
                try await closure()
                return "1"
            }
        }
        let update = Task {
            try await cache.update(forKey: "updated") { value in
                try await closure()
                value = "2"
            }
        }
        let lock = Task { try await client.lock("lock", for: .seconds(5)) { _ in try await closure() } }
        await eventually { begun.value == 3 }
        client.shutdown()
        #expect(try await fetch.value == "1")
        try await update.value
        try await lock.value
        try await run.value
        let other = try BlockingLarderClient(socketPath: daemon.socketPath)
        #expect(try other.value(String.self, forKey: "fetched") == "1")
        #expect(try other.value(String.self, forKey: "updated") == "2")
    }
}

extension LarderClient: ClientHookTests.Service {}
extension LarderFollower: ClientHookTests.Service {}
