import Larder
import LarderOrigins
import LarderPlatform
import LarderTestSupport
import Testing

/// Like ``FleetTests``, but for the library: programs have their own caches in front of one cluster.
///
/// Each test starts its own process, because other tests occupy this process's threads for tasks.
@Suite(
    .enabled(if: RedisCluster.isAvailable, "neither redis-server nor valkey-server is installed"), .serialized)
struct CacheFleetTests {
    @Test(
        "caches in front of a failing cluster lose no write and serve no value that is too old",
        arguments: RedisProcess.programs, [false, true])
    func cachesServeNoStaleValueDuringFaults(program: String, hasReplicas: Bool) async throws {
        let seed = testSeed("fleet of caches \(program)\(hasReplicas ? " with replicas" : "")")
        let result = try await #require(processExitsWith: .success, observing: [\.standardOutputContent]) {
            [program = program as String, hasReplicas = hasReplicas as Bool, seed = seed as UInt64] in
            try await onThread { try CacheFleetTests.rounds(program, hasReplicas, seed) }
        }
        let output = String(decoding: result.standardOutputContent, as: UTF8.self)
        for line in output.split(separator: "\n") where line.hasPrefix("fleet round") { print(line) }
    }

    private static func rounds(_ program: String, _ hasReplicas: Bool, _ seed: UInt64) throws {
        let origin = try FleetOrigin(hasReplicas: hasReplicas, program: program)
        for number in 0..<FleetOrigin.rounds {
            let seed = seed &+ UInt64(number)
            var random = SeededGenerator(seed: seed)
            var plan = FleetRound.Plan.random("\(seed)", hasReplicas: hasReplicas, &random)
            let kinds = (0..<2).map { _ in CacheTier.Kind.random(&random) }
            plan.writesBehind = kinds[0].hasOutbox
            let address = try OriginAddress(origin.url)
            // The caches of one program may share an origin object.
            let isShared = random.oneIn(3)
            let shared = RedisCacheOrigin(address)
            let tiers = try kinds.map { try CacheTier($0, origin: isShared ? shared : RedisCacheOrigin(address)) }
            defer { for tier in tiers { tier.stop() } }
            try origin.round(seed, tiers, plan, "\(kinds)\(isShared ? ", one origin" : "")")
        }
    }

    /// Returns an origin for caches that trust entries for a minute without a heartbeat.
    static func patient(_ url: String) throws -> RedisCacheOrigin {
        var limits = OriginLimits()
        limits.heartbeat = 100
        limits.heartbeatLimit = 60_000
        limits.call = 60_000
        return RedisCacheOrigin(try OriginAddress(url), limits: limits)
    }

    /// Only the heartbeat detects a missed invalidation. Without a heartbeat the read is stale, and the checker reports
    /// that.
    @Test(arguments: [false, true])
    func heartbeatsDetectAMissedInvalidation(hasHeartbeat: Bool) async {
        await #expect(processExitsWith: .success) { [hasHeartbeat = hasHeartbeat as Bool] in
            try await onThread {
                let origin = try FleetOrigin(hasReplicas: false)
                let source =
                    hasHeartbeat
                    ? RedisCacheOrigin(try OriginAddress(origin.url)) : try CacheFleetTests.patient(origin.url)
                let tier = try CacheTier(.init(), origin: source)
                defer { tier.stop() }
                #expect(try origin.silence(tier) == (hasHeartbeat ? [] : [.stale]))
            }
        }
    }

    /// Each cache requests a missing key once, regardless of the number of readers and of the origin's speed.
    @Test func eachCacheRequestsAMissingKeyOnce() async {
        await #expect(processExitsWith: .success) {
            let origin = try await onThread { try FleetOrigin(hasReplicas: false) }
            let tiers = try (0..<2).map { _ in
                try CacheTier(.init(), origin: try CacheFleetTests.patient(origin.url), callLimit: 60_000)
            }
            defer { for tier in tiers { tier.stop() } }
            let warm = try origin.cluster.key(on: 1, prefix: "warm")
            for tier in tiers {
                // At first the origin is not trusted, and each reader makes its own request: wait until that ends.
                var asked = -1
                while try origin.gets() != asked {
                    #expect(try await tier.cache.value(String.self, forKey: warm) == nil)
                    asked = try origin.gets()
                    #expect(try await tier.cache.value(String.self, forKey: warm) == nil)
                }
            }
            let key = try origin.cluster.key(on: 1, prefix: "cold")
            _ = try origin.cluster.call(key: key, "SET \(key) v")
            let before = try origin.gets()
            origin.proxy.set(.freeze([.toClient]), on: 1)
            let readers = tiers.flatMap { tier in
                (0..<40).map { number in
                    Task { () -> String? in
                        // Read the key alone, or together with another key.
                        if number % 2 == 0 { return try await tier.cache.value(String.self, forKey: key) }
                        return try await tier.cache.values(String.self, forKeys: [key, warm])[key]
                    }
                }
            }
            try await eventually { try origin.gets() >= before + 2 }
            for tier in tiers { #expect(try await tier.cache.value(String.self, forKey: warm) == nil) }
            origin.proxy.set(.none)
            for reader in readers { #expect(try await reader.value == "v") }
            #expect(try origin.gets() == before + 2)
        }
    }
}
