// Uses all integrations with a running larderd, whose socket is in LARDER_SOCKET. Prints a line for each.

import Hummingbird
import Larder
import LarderClient
import LarderHummingbird
import LarderLogging
import LarderMetrics
import LarderServiceLifecycle
import LarderVapor
import Logging
import Metrics
import ServiceLifecycle
import Synchronization
import Vapor

struct Unexpected: Error {
    let what: String
}

func expect(_ condition: Bool, _ what: String) throws {
    if !condition { throw Unexpected(what: what) }
}

/// Collects what handlers receive.
final class Received: Sendable {
    private let items = Mutex<[String]>([])

    func add(_ item: String) { items.withLock { $0.append(item) } }
    func contains(_ text: String) -> Bool { items.withLock { $0.contains { $0.contains(text) } } }
}

struct Handler: LogHandler {
    var logLevel = Logger.Level.debug
    let received: Received

    func log(
        level: Logger.Level, message: Logger.Message, metadata: Logger.Metadata?, source: String, file: String,
        function: String, line: UInt
    ) {
        received.add("\(level) \(source): \(message) \(metadata ?? [:])")
    }
}

final class Meter: RecorderHandler, TimerHandler {
    let name: String
    let received: Received

    init(_ label: String, _ dimensions: [(String, String)], _ received: Received) {
        name = label + dimensions.map { " \($0)=\($1)" }.joined()
        self.received = received
    }

    func record(_ value: Double) { received.add("gauge \(name)") }
    func recordNanoseconds(_ duration: Int64) { received.add("timer \(name)") }
}

struct Factory: MetricsFactory {
    let received: Received

    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        Meter(label, dimensions, received)
    }
    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        Meter(label, dimensions, received)
    }
}

let (logged, measured) = (Received(), Received())
let logger = Logger(label: "exercise") { _ in Handler(received: logged) }
MetricsSystem.bootstrap(Factory(received: measured))

var options = ClientOptions()
options.onEvent = { logger.log($0) }
options.onMeasurement = { $0.record() }
let client = try await LarderClient.connect(options: options)
try await client.ping()
while !logged.contains("info Larder: connected to the daemon") { try await Task.sleep(for: .milliseconds(1)) }
try expect(logged.contains("socket"), "no metadata")
print("Logging")
try expect(measured.contains("timer larder.client.duration database=0 operation=PING outcome=ok"), "no measurement")
print("Metrics")

let sessions: any PersistDriver = LarderPersistDriver(client: client)
try await sessions.create(key: "user", value: ["eve"], expires: .seconds(60))
do {
    try await sessions.create(key: "user", value: ["bob"], expires: nil)
    throw Unexpected(what: "created twice")
} catch let error as PersistError {
    try expect(error == .duplicate, "\(error)")
}
try await sessions.set(key: "user", value: ["ann"], expires: nil)
try expect(try await sessions.get(key: "user", as: [String].self) == ["ann"], "not set")
let left = try await client.cache("persist", of: [String].self).timeToLive(forKey: "user")
if case .milliseconds(let milliseconds)? = left { try expect(milliseconds <= 60_000, "the deadline was lost") }
do {
    _ = try await sessions.get(key: "user", as: Int.self)
    throw Unexpected(what: "no error")
} catch let error as PersistError {
    try expect(error == .invalidConversion, "\(error)")
}
try await sessions.remove(key: "user")
try expect(try await sessions.get(key: "user", as: [String].self) == nil, "not removed")
print("Hummingbird")

final class Loop: EventLoop {}

let values: any Vapor.Cache = LarderCache(client, on: Loop()).for(Request(eventLoop: Loop()))
try await values.set("pi", to: 3.14, expiresIn: .seconds(60)).get()
try expect(try await values.get("pi", as: Double.self).get() == 3.14, "not set")
try expect(try await client.cache("vapor", of: Double.self).value(forKey: "pi") == 3.14, "not plain JSON")
try await values.set("pi", to: Double?.none).get()
try expect(try await values.get("pi", as: Double.self).get() == nil, "not removed")
print("Vapor")

/// A service that uses the client after its shutdown has begun: the client must still be open.
struct Worker: Service {
    let client: LarderClient
    let started: Received

    func run() async throws {
        started.add("worker")
        try await gracefulShutdown()
        try await client.ping()
    }
}

let started = Received()
let outbox = try Outbox<String>(try Larder.Cache.inMemory()) { _ in }
let group = ServiceGroup(
    services: [GracefulService(client), GracefulService(outbox), Worker(client: client, started: started)],
    logger: logger)
let running = Task { try await group.run() }
while !started.contains("worker") { try await Task.sleep(for: .milliseconds(1)) }
try outbox.save("1", forKey: "a")
try expect(await outbox.untilDelivered("a"), "not delivered")
await group.triggerGracefulShutdown()
try await running.value
do {
    try await client.ping()
    throw Unexpected(what: "the client is still open")
} catch let error as LarderClientError {
    try expect(error.code == .closed, "\(error)")
}
print("ServiceLifecycle")
