import Platform
import TestSupport

/// Something that is read through: a larderd in front of the origin, or what stands in for one.
protocol FleetTier: Sendable {
    func connect() throws -> SocketClient
    func stop()
}

/// A larderd whose first database has an origin.
final class LarderTier: FleetTier, @unchecked Sendable {
    // Nothing changes after init.
    private let daemon: DaemonProcess

    /// - Parameter words: behind the address.
    init(origin: String, _ words: [String] = ["THROUGH"], options: [String] = []) throws {
        daemon = try DaemonProcess(options)
        let reply = try daemon.connect().call(["ORIGIN", origin] + words)
        guard reply == Array("+OK\r\n".utf8) else {
            throw SocketClient.Failure(description: "ORIGIN \(origin): \(String(decoding: reply, as: UTF8.self))")
        }
    }

    /// Whether larderd knows of origins.
    static let isThere: Bool = {
        guard let daemon = try? DaemonProcess() else { return false }
        let reply = try? daemon.connect().call("ORIGIN")
        return withExtendedLifetime(daemon) { reply?.contains("unknown command") == false }
    }()

    func connect() throws -> SocketClient { try daemon.connect() }
    func stop() { daemon.kill() }
    func log() -> String { daemon.process.errors }
}

/// A tier in the test's process that asks the origin for everything, or makes a mistake that the checker must find.
final class StandInTier: FleetTier, Sendable {
    enum Mistake: String, CaseIterable, Sendable {
        case none
        /// Keeps what it has read for ever.
        case keeps
        /// Now and then answers with what it read first.
        case wavers
        /// Acknowledges writes and forgets one in ten.
        case forgets
        /// Sometimes takes its time.
        case sleeps
        /// Sometimes answers with the value of another key.
        case mistakes
        /// Closes connections without an answer after some reads, for ever.
        case dies
    }

    private let server: FakeServer

    init(_ cluster: RedisCluster, _ mistake: Mistake) throws {
        let clients = Guarded<[Int: ClusterClient]>([:])
        let kept = Guarded<[String: [UInt8]]>([:])
        let calls = Guarded(0)
        server = try FakeServer { request in
            let words = request.text
            guard words.count > 1, words[0] == "GET" || words[0] == "SET" else { return .standard }
            let number = calls.with { calls in
                calls += 1
                return calls
            }
            if mistake == .dies, number > 200 { return .last([]) }
            if mistake == .sleeps, number % 500 == 0 { WorkThread.sleep(nanoseconds: 4_000_000_000) }
            if words[0] == "SET", mistake == .forgets, number % 10 == 0 { return .text("+OK\r\n") }
            if words[0] == "GET", mistake == .keeps || mistake == .wavers && number % 7 == 0,
                let bytes = kept.with({ $0[words[1]] })
            {
                return .bytes(bytes)
            }
            var asked = words
            if mistake == .mistakes, number % 300 == 0, words[0] == "GET" { asked[1] = "\(words[1])x" }
            let client = clients.with { clients in
                clients[request.connection, default: ClusterClient(cluster)]
            }
            clients.with { $0[request.connection] = client }
            guard let reply = try? client.call(asked[1], asked, until: MonotonicClock.milliseconds() + 1000).reply
            else {
                return .text("-ORIGIN does not answer\r\n")
            }
            if mistake == .mistakes, asked != words { return .text("$7\r\nk99/1/x\r\n") }
            kept.with { kept in
                if mistake != .wavers || kept[words[1]] == nil { kept[words[1]] = reply }
            }
            return .bytes(reply)
        }
    }

    func connect() throws -> SocketClient { try SocketClient(server.path) }
    func stop() { server.stop() }
}
