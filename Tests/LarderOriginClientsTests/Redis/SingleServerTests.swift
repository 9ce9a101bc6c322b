import LarderOriginClients
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests with a real redis-server.
@Suite struct SingleServerTests {
    private static func live(
        _ limits: OriginLimits = .patient, settings: [String] = [],
        _ body: (RedisOrigin, OriginEars, SocketClient) async throws -> Void
    ) async throws {
        let redis = try RedisProcess(settings)
        let ears = OriginEars()
        let origin = RedisOrigin(try .at(redis.socketPath), limits: limits, listener: ears)
        await origin.waitUntilBelieved()
        try await body(origin, ears, try redis.connect())
        origin.close()
        withExtendedLifetime(redis) {}
    }

    @Test(.timeLimit(.minutes(10))) func valuesAndLifetimesAreRead() async throws {
        try await Self.live { origin, _, other in
            _ = try other.call("SET a 1")
            _ = try other.call("SET b 2 PX 60000")
            let before = MonotonicClock.nanoseconds()
            let readings = try await origin.readMany(["a", "b", "c"]).map { try $0.get() }
            #expect(readings.map(\.value) == [[49], [50], nil])
            #expect(readings[0].lifetimeMilliseconds == nil && readings[2].lifetimeMilliseconds == nil)
            #expect((1...60_000).contains(readings[1].lifetimeMilliseconds ?? 0))
            for reading in readings {
                #expect(reading.sentAt >= before && reading.sentAt <= MonotonicClock.nanoseconds())
                #expect(origin.isCurrentNow(reading.stamp))
            }
            _ = try other.call("RPUSH list x")
            #expect(await origin.error("list")?.description.contains("WRONGTYPE") == true)
            #expect(try await origin.value("a") == "1")
            #expect(await origin.readMany([]).isEmpty)
        }
    }

    @Test(.timeLimit(.minutes(10))) func aWriteByAnotherClientIsReported() async throws {
        try await Self.live { origin, ears, other in
            let reading = try await origin.reading("a")
            #expect(reading.value == nil)
            _ = try other.call("SET a 1")
            await eventually { ears.invalidated.all == ["a"] }
            #expect(try await origin.value("a") == "1")
            _ = try other.call("DEL a")
            await eventually { ears.invalidated.count == 2 }
            #expect(origin.isCurrentNow(reading.stamp), "one key has changed, not the epoch")
        }
    }

    /// After a client's own SET, the server does not track the key. The client therefore reads the key after its write,
    /// which makes the server track it again.
    @Test(.timeLimit(.minutes(10)), arguments: [false, true]) func aWriteByAnotherClientAfterAnOwnWriteIsReported(
        _ isReadBefore: Bool
    ) async throws {
        try await Self.live { origin, ears, other in
            if isReadBefore { _ = try await origin.reading("a") }
            let done = try await origin.write("a", "own", .milliseconds(60_000))
            #expect(origin.isCurrentNow(done.stamp))
            #expect((1...60_000).contains(done.lifetimeMilliseconds ?? 0))
            #expect(ears.invalidated.all == (isReadBefore ? ["a"] : []), "an own write is reported before its reply")
            ears.invalidated.removeAll()
            _ = try other.call("SET a foreign")
            await eventually { ears.invalidated.all == ["a"] }
            #expect(try await origin.value("a") == "foreign")
        }
    }

    /// A written value of more than 16 KiB is not read back to confirm the write. The next reader requests the value.
    @Test(.timeLimit(.minutes(10))) func aLongValueIsNotReadBackAfterItsWrite() async throws {
        try await Self.live { origin, _, _ in
            let long = String(repeating: "x", count: 16 << 10)
            let known = try await origin.write("a", long)
            #expect(origin.isCurrentNow(known.stamp))
            let unknown = try await origin.write("a", long + "x")
            #expect(unknown.stamp == nil)
            #expect(try await origin.value("a") == long + "x")
        }
    }

    /// If the caller does not cache the written value, the client does not read it back, so the write is not confirmed.
    @Test(.timeLimit(.minutes(10))) func aWriteThatIsNotToBeCachedIsNotReadBack() async throws {
        try await Self.live { origin, _, other in
            let write = OriginWrite(key: Array("a".utf8), value: Array("1".utf8), lifetime: .unlimited, isKept: false)
            let done = try await withCheckedContinuation { continuation in
                origin.write(write) { continuation.resume(returning: $0) }
            }.get()
            #expect(!done.isConfirmed && done.stamp == nil)
            #expect(try other.call("GET a") == "$1\r\n1\r\n")
            let reads = try other.call("INFO commandstats").split(separator: "\r\n").filter {
                $0.hasPrefix("cmdstat_pttl:")
            }
            #expect(reads.isEmpty, "\(reads)")
        }
    }

    /// With NOLOOP, Redis would not report keys that it evicts while it runs a command of the same connection.
    @Test(.timeLimit(.minutes(10))) func evictionsCausedByOwnCommandsAreReported() async throws {
        let settings = ["--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru", "--maxmemory-samples", "10"]
        try await Self.live(settings: settings) { origin, ears, other in
            for index in 0..<50 { _ = try other.call("SET user:\(index) old") }
            let stamps = try await origin.readMany((0..<50).map { "user:\($0)" }).map { try $0.get().stamp }
            #expect(stamps.allSatisfy { origin.isCurrentNow($0) })
            let page = String(repeating: "p", count: 1000)
            // Requests that wait in the server's buffers count as memory, too.
            for start in stride(from: 0, to: 3000, by: 100) {
                try await origin.writeMany((start..<start + 100).map { "page:\($0)" }, page)
            }
            let gone = try (0..<50).filter { try other.call("EXISTS user:\($0)") == ":0\r\n" }
            #expect(!gone.isEmpty, "the test needs evictions")
            await eventually { Set(ears.invalidated.all).isSuperset(of: gone.map { "user:\($0)" }) }
        }
    }

    /// The server tracks at most ten keys, and must report a key when it stops tracking that key.
    @Test(.timeLimit(.minutes(10))) func keysThatAreNoLongerTrackedAreReported() async throws {
        try await Self.live(settings: ["--tracking-table-max-keys", "10"]) { origin, ears, other in
            let keys = (0..<50).map { "k\($0)" }
            for key in keys { _ = try await origin.reading(key) }
            for key in keys { _ = try other.call("SET \(key) new") }
            await eventually { Set(ears.invalidated.all).isSuperset(of: keys) }
        }
    }

    @Test(.timeLimit(.minutes(10))) func lifetimesAreWritten() async throws {
        try await Self.live { origin, _, other in
            #expect(try await origin.write("a", "1").lifetimeMilliseconds == nil)
            #expect(try other.call("PTTL a") == ":-1\r\n")
            _ = try other.call("PEXPIRE a 50000")
            let kept = try await origin.write("a", "2", .kept)
            #expect((1...50_000).contains(kept.lifetimeMilliseconds ?? 0))
            let past = try await origin.write("a", "3", .until(1_000))
            #expect(past.stamp == nil, "the key no longer exists")
            #expect(try other.call("EXISTS a") == ":0\r\n")
        }
    }

    @Test(.timeLimit(.minutes(10))) func keysChangedByRemovalsAndCommandsAreReported() async throws {
        try await Self.live { origin, ears, other in
            for key in ["a", "b", "n"] { _ = try await origin.reading(key) }
            _ = try other.call("MSET a 1 b 2")
            #expect(try await origin.remove(["a", "b", "c"]) == 2)
            #expect(ears.invalidated.all.suffix(3) == ["a", "b", "c"])
            #expect(try await origin.remove([]) == 0)
            ears.invalidated.removeAll()
            #expect(try await origin.perform("INCR n", key: "n").int == 1)
            #expect(ears.invalidated.all.contains("n"), "reported before the reply")
            // Other keys that a command changes are reported too.
            _ = try await origin.reading("z")
            try await origin.perform("MSET n 5 z 6", key: "n")
            await eventually { ears.invalidated.all.contains("z") }
            await #expect(throws: OriginError.self) { try await origin.perform("NOSUCH x", key: "x") }
        }
    }

    @Test(.timeLimit(.minutes(10))) func aFlushInvalidatesEarlierReads() async throws {
        try await Self.live { origin, ears, other in
            let stamp = try await origin.reading("a").stamp
            #expect(origin.isCurrentNow(stamp))
            _ = try other.call("FLUSHALL")
            await eventually { !ears.lost.isEmpty }
            #expect(!origin.isCurrentNow(stamp))
            #expect(origin.isCurrentNow(try await origin.reading("a").stamp))
            #expect(origin.status().epochsEnded == 1)
        }
    }

    @Test(.timeLimit(.minutes(10))) func aLostConnectionInvalidatesEarlierReadsAndIsReplaced() async throws {
        try await Self.live { origin, ears, other in
            let stamp = try await origin.reading("a").stamp
            _ = try other.call("CLIENT KILL TYPE normal SKIPME yes")
            await eventually { !ears.lost.isEmpty }
            #expect(!origin.isCurrentNow(stamp))
            await eventually { !ears.recovered.isEmpty }
            await eventually { origin.status().servers[0].isUp }
            #expect(!origin.isCurrentNow(stamp))
            #expect(origin.isCurrentNow(try await origin.reading("a").stamp))
        }
    }

    /// A stopped server sends nothing: only the heartbeat notices it.
    @Test(.timeLimit(.minutes(10))) func aFrozenServerInvalidatesEarlierReads() async throws {
        let redis = try RedisProcess()
        let ears = OriginEars()
        let limits = OriginLimits.with {
            $0.heartbeat = 50
            $0.heartbeatLimit = 100
            $0.call = 400
            $0.connect = 200
        }
        let origin = RedisOrigin(try .at(redis.socketPath), limits: limits, listener: ears)
        await origin.waitUntilBelieved()
        let stamp = try #require(try await origin.reading("a").stamp)
        redis.freeze()
        await eventually { !ears.lost.isEmpty }
        #expect(!origin.isCurrentNow(stamp))
        let start = MonotonicClock.milliseconds()
        #expect(await origin.error("a") != nil)
        #expect(MonotonicClock.milliseconds() - start < 30_000)
        redis.thaw()
        await eventually { !ears.recovered.isEmpty }
        await eventually { origin.isCurrentNow(try? await origin.reading("a").stamp) }
        #expect(!origin.isCurrentNow(stamp))
        origin.close()
    }

    /// Trust ends even if the origin's thread does not run: a process that was stopped and continued serves no outdated
    /// value.
    @Test(.timeLimit(.minutes(10))) func readsAreNotCurrentAfterTheStalenessLimit() async throws {
        try await Self.live { origin, _, _ in
            let stamp = try #require(try await origin.reading("a").stamp)
            let now = MonotonicClock.nanoseconds()
            #expect(origin.isCurrent(stamp, now: now))
            #expect(!origin.isCurrent(stamp, now: now + Int64(OriginLimits.patient.staleness) * 1_000_000))
            #expect(!origin.isCurrent(OriginStamp(part: stamp.part, epoch: stamp.epoch + 1), now: now))
            #expect(!origin.isCurrent(OriginStamp(part: 5, epoch: 1), now: now))
            #expect(!origin.isCurrent(OriginStamp(part: .max, epoch: 1), now: now))
        }
    }

    @Test(.timeLimit(.minutes(10))) func manyConcurrentCallsAreAllAnswered() async throws {
        try await Self.live { origin, _, other in
            for index in 0..<100 { _ = try other.call("SET k\(index) \(index)") }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<2_000 {
                    group.addTask {
                        let value = try await origin.value("k\(index % 100)")
                        #expect(value == "\(index % 100)")
                    }
                }
                try await group.waitForAll()
            }
            let all = await origin.readMany((0..<20_000).map { "k\($0 % 100)" })
            #expect(all.count { (try? $0.get().value) != nil } == 20_000)
            #expect(origin.status().reads == 22_000)
        }
    }

    @Test(.timeLimit(.minutes(10))) func valuesLargerThanTheLimitAreErrors() async throws {
        let limits = OriginLimits.with {
            $0.valueBytes = 1000
            $0.heartbeatLimit = 20_000
        }
        try await Self.live(limits) { origin, _, other in
            _ = try other.call(["SET", "big", String(repeating: "x", count: 5_000_000)])
            _ = try other.call(["SET", "fits", String(repeating: "x", count: 1000)])
            let results = await origin.readMany(["big", "fits", "none"])
            #expect(results[0].failure == .tooLarge(bytes: 5_000_000, most: 1000))
            #expect(try results[1].get().value?.count == 1000)
            #expect(try results[2].get().value == nil)
            await #expect(throws: OriginError.tooLarge(bytes: 5_000_000, most: 1000)) {
                try await origin.perform("GET big", key: "big")
            }
            await #expect(throws: OriginError.tooLarge(bytes: 1001, most: 1000)) {
                try await origin.write("a", String(repeating: "x", count: 1001))
            }
            // The values of one call have a common limit too.
            #expect(await origin.readMany(Array(repeating: "fits", count: 5))[4].failure != nil)
        }
    }

    @Test(.timeLimit(.minutes(10))) func changesOfTrackedPrefixesAreReportedWithoutReads() async throws {
        let redis = try RedisProcess()
        let ears = OriginEars()
        let origin = RedisOrigin(
            try .at(redis.socketPath), limits: .patient, tracking: .broadcast(prefixes: [Array("user:".utf8)]),
            listener: ears)
        await origin.waitUntilBelieved()
        _ = try redis.connect().call("MSET user:1 a other 2")
        await eventually { ears.invalidated.all == ["user:1"] }
        #expect(origin.isCurrentNow(try await origin.reading("user:1").stamp))
        #expect(try await origin.reading("other").stamp == nil)
        origin.close()
    }

    @Test(.timeLimit(.minutes(10))) func theDatabaseInTheAddressIsSelected() async throws {
        let redis = try RedisProcess()
        let other = try redis.connect()
        _ = try other.call("SELECT 3")
        _ = try other.call("SET a three")
        let origin = RedisOrigin(try OriginAddress("unix://\(redis.socketPath)?db=3"))
        #expect(try await origin.value("a") == "three")
        #expect(try await origin.perform("DBSIZE", key: nil).int == 1)
        origin.close()
        let missing = RedisOrigin(try OriginAddress("unix://\(redis.socketPath)?db=99"))
        #expect(await missing.error("a")?.description.contains("out of range") == true)
    }
}

extension Result {
    var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
