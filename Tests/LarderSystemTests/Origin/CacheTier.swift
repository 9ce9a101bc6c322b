import Larder
import LarderOrigins
import LarderPlatform
import LarderTestSupport

/// A tier for a program with its own larder: the library's cache in front of the origin. It runs in the test's process
/// behind a socket, so that the checker can use it like a larderd.
final class CacheTier: FleetTier, Sendable {
    /// The settings of a tier.
    struct Kind: Sendable, CustomStringConvertible {
        var writing = OriginCache.Writing.through
        /// Whether an outbox acknowledges writes, and delivers them later.
        var hasOutbox = false
        /// Whether entries are removed all the time, as if they were evicted.
        var evicts = false
        var keepsModels = true

        static func random(_ random: inout SeededGenerator) -> Kind {
            Kind(
                writing: random.oneIn(2) ? .through : .around, hasOutbox: random.oneIn(3), evicts: random.oneIn(3),
                keepsModels: !random.oneIn(3))
        }

        var description: String {
            "\(writing)" + (hasOutbox ? ", outbox" : "") + (evicts ? ", evicts" : "")
                + (keepsModels ? "" : ", no models kept")
        }
    }

    let cache: OriginCache
    private let server: FakeServer
    private let box: Box?

    /// - Parameter callLimit: the longest duration of a call, in milliseconds.
    init(_ kind: Kind, origin: RedisCacheOrigin, callLimit: Int = 2000) throws {
        var options = CacheOptions()
        options.decodedModels = kind.keepsModels
        if kind.evicts { options.memoryBytes = 0 }
        var fetching = OriginCache.standardOptions
        fetching.hardTimeout = .milliseconds(callLimit)
        let database = try Cache.inMemory(policy: .high, options: options)
        let cache = OriginCache(database, origin: origin, writing: kind.writing, options: fetching)
        let box = kind.hasOutbox ? try Box(origin) : nil
        (self.cache, self.box) = (cache, box)
        let requests = Guarded(0)
        server = try FakeServer { request in
            let words = request.text
            if kind.evicts,
                requests.with({
                    $0 += 1
                    return $0 % 5 == 0
                })
            {
                _ = try? database.remove(words[1])
            }
            return .bytes(
                Self.waiting { () async -> [UInt8] in
                    do {
                        switch words.first {
                        case "SET":
                            if let box {
                                try await box.save(words[2], forKey: words[1])
                            } else {
                                try await cache.set(words[2], forKey: words[1])
                            }
                            return Array("+OK\r\n".utf8)
                        case "GET": return Self.bulk(try await cache.value(String.self, forKey: words[1]))
                        default:
                            let found = try await cache.values(String.self, forKeys: words.dropFirst())
                            return Array("*\(words.count - 1)\r\n".utf8)
                                + words.dropFirst().flatMap { Self.bulk(found[$0]) }
                        }
                    } catch {
                        return Array("-ORIGIN \(error)".utf8.filter { $0 != 0x0D && $0 != 0x0A }) + [0x0D, 0x0A]
                    }
                })
        }
    }

    private static func bulk(_ value: String?) -> [UInt8] {
        Array((value.map { "$\($0.utf8.count)\r\n\($0)\r\n" } ?? "$-1\r\n").utf8)
    }

    /// Blocks a thread until an asynchronous function returns its result.
    static func waiting<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) -> Value {
        let (gate, result) = (Gate(isClosed: true), Guarded<Value?>(nil))
        Task {
            result.value = await body()
            gate.open()
        }
        gate.pass()
        while true { if let value = result.value { return value } }
    }

    func connect() throws -> SocketClient { try SocketClient(server.path) }

    /// Saved writes are delivered after a restart.
    func deliver() {
        guard let box else { return }
        Self.waiting { await box.deliverAfterRestart() }
    }

    func stop() {
        server.stop()
        box?.close()
        cache.close()
    }

    /// A larder on disk, with an outbox that delivers writes to an origin.
    private final class Box: Sendable {
        private let directory: TemporaryDirectory
        private let origin: RedisCacheOrigin
        private let outbox: Guarded<Outbox<String>>
        private let saved = Guarded<Set<String>>([])

        init(_ origin: RedisCacheOrigin) throws {
            self.origin = origin
            directory = try TemporaryDirectory(inMemory: true)
            outbox = Guarded(try Self.open(directory.path, origin))
        }

        private static func open(_ directory: String, _ origin: RedisCacheOrigin) throws -> Outbox<String> {
            let cache = try Cache(named: "saved", policy: .never, directory: directory)
            return try Outbox<String>(cache, concurrency: 4) { delivery in
                guard let value = delivery.value else { return }
                _ = try await origin.write(OriginWriting(Array(value.utf8)), forKey: delivery.keyBytes)
            }
        }

        func save(_ value: String, forKey key: String) async throws {
            saved.with { _ = $0.insert(key) }
            try await outbox.value.save(value, forKey: key)
        }

        func deliverAfterRestart() async {
            let previous = outbox.value
            await previous.close()
            await previous.cache.close()
            // The larder stays open in this process until its last reference is released.
            guard let again = try? Self.open(directory.path, origin) else { return }
            outbox.value = again
            for key in saved.value { await again.untilDelivered(key) }
        }

        func close() {
            outbox.value.close()
            outbox.value.cache.close()
        }
    }
}
