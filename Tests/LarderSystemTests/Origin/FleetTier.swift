import LarderPlatform
import LarderTestSupport

/// A cache through which the checker reads: a larderd in front of the origin, or a stand-in.
protocol FleetTier: Sendable {
    func connect() throws -> SocketClient
    /// Delivers all acknowledged writes that the origin does not have yet, and waits until it has them.
    func deliver()
    func stop()
}

extension FleetTier {
    func deliver() {}
}

/// A larderd whose first database has an origin.
final class LarderTier: FleetTier, @unchecked Sendable {
    // Immutable after init.
    private let daemon: DaemonProcess

    /// - Parameter words: the words after the address.
    init(origin: String, _ words: [String] = ["THROUGH"], options: [String] = []) throws {
        daemon = try DaemonProcess(options)
        let reply = try daemon.connect().call(["ORIGIN", origin] + words)
        guard reply == Array("+OK\r\n".utf8) else {
            throw SocketClient.Failure(description: "ORIGIN \(origin): \(String(decoding: reply, as: UTF8.self))")
        }
    }

    func connect() throws -> SocketClient { try daemon.connect() }
    func stop() { daemon.kill() }
    func log() -> String { daemon.process.errors }
}

/// A tier in the test's process that forwards all requests to the origin, or makes a mistake that the checker must
/// find.
final class StandInTier: FleetTier, Sendable {
    enum Mistake: String, CaseIterable, Sendable {
        case none
        /// Never discards a value that it has read.
        case keeps
        /// Sometimes replies with the first value that it has read.
        case wavers
        /// Acknowledges writes, but loses one in ten.
        case forgets
        /// Sometimes replies late.
        case sleeps
        /// Sometimes replies with the value of another key.
        case mistakes
        /// After some reads, closes each connection without a reply, and does not recover.
        case dies
    }

    private let server: FakeServer

    init(_ cluster: RedisCluster, _ mistake: Mistake) throws {
        let origin = MistakenOrigin(cluster, mistake)
        server = try FakeServer { request in
            let words = request.text
            switch words.first {
            case "GET", "SET": return origin.answer(words, request.connection)
            case "MGET":
                var replies = Array("*\(words.count - 1)\r\n".utf8)
                for key in words.dropFirst() {
                    guard case .bytes(let bytes) = origin.answer(["GET", key], request.connection) else {
                        return .last([])
                    }
                    if bytes.first == UInt8(ascii: "-") { return .bytes(bytes) }
                    replies += bytes
                }
                return .bytes(replies)
            default: return .standard
            }
        }
    }

    func connect() throws -> SocketClient { try SocketClient(server.path) }
    func stop() { server.stop() }
}

/// The origin of a stand-in tier, which makes the stand-in's mistakes.
///
/// Thread-safe. `@unchecked Sendable`: only the thread of its connection uses a client.
private final class MistakenOrigin: @unchecked Sendable {
    private let cluster: RedisCluster
    private let mistake: StandInTier.Mistake
    private let clients = Guarded<[Int: ClusterClient]>([:])
    private let kept = Guarded<[String: [UInt8]]>([:])
    private let calls = Guarded(0)

    init(_ cluster: RedisCluster, _ mistake: StandInTier.Mistake) {
        (self.cluster, self.mistake) = (cluster, mistake)
    }

    /// - Parameter words: `GET key` or `SET key value`.
    func answer(_ words: [String], _ connection: Int) -> FakeServer.Answer {
        let (isRead, key) = (words[0] == "GET", words[1])
        let number = calls.with { calls in
            calls += 1
            return calls
        }
        switch mistake {
        case .dies where number > 200: return .last([])
        case .sleeps where number % 500 == 0: WorkThread.sleep(nanoseconds: 4_000_000_000)
        case .forgets where !isRead && number % 10 == 0: return .text("+OK\r\n")
        case .mistakes where isRead && number % 300 == 0: return .text("$7\r\nk99/1/x\r\n")
        case .keeps where isRead, .wavers where isRead && number % 7 == 0:
            if let bytes = kept.with({ $0[key] }) { return .bytes(bytes) }
        default: break
        }
        let client = clients.with { clients in
            let client = clients[connection] ?? ClusterClient(cluster)
            clients[connection] = client
            return client
        }
        guard let reply = try? client.call(key, words, until: MonotonicClock.milliseconds() + 1000).reply else {
            return .text("-ORIGIN does not answer\r\n")
        }
        if isRead { kept.with { if mistake != .wavers || $0[key] == nil { $0[key] = reply } } }
        return .bytes(reply)
    }
}
