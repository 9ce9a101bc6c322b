import LarderEngine
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderQuerying
@testable import LarderServer

/// Live queries under random changes: after each round, the rows of each reader are those of the same query.
@Suite struct LiveQueryOracleTests {
    private static let paths = ["a", "b", "a.b", "tags"]

    private static func scalar(_ random: inout SeededGenerator) -> String {
        ["null", "true", "0", "1", "2", "0.5", "\"x\"", "\"y\"", "\"xy\""][random.below(9)]
    }

    private static func document(_ random: inout SeededGenerator) -> String {
        var members = ["a", "b"].filter { _ in random.below(5) > 0 }.map { "\"\($0)\":\(scalar(&random))" }
        if random.oneIn(3) { members.append("\"tags\":[\(scalar(&random)),\(scalar(&random))]") }
        if random.oneIn(5) { members.append("\"a\":{\"b\":\(scalar(&random))}") }
        return "{" + members.joined(separator: ",") + "}"
    }

    private static func test(_ random: inout SeededGenerator) -> [String] {
        let path = paths[random.below(paths.count)]
        switch random.below(9) {
        case 0...3: return [path, "=", "JSON", scalar(&random)]
        case 4: return [path, [">", "<="][random.below(2)], "JSON", scalar(&random)]
        case 5: return [path, "IN", "2", "JSON", scalar(&random), "JSON", scalar(&random)]
        case 6: return ["@key", "PREFIX", "k1"]
        case 7: return ["@expires", ["EXISTS", "MISSING"][random.below(2)]]
        default: return [path, ["EXISTS", "MISSING"][random.below(2)]]
        }
    }

    private static func query(_ random: inout SeededGenerator) -> [String] {
        var words = random.oneIn(4) ? ["KEYS"] : []
        switch random.below(6) {
        case 0: break
        case 1: words += ["WHERE"] + test(&random) + ["OR"] + test(&random)
        case 2: words += ["WHERE", "NOT"] + test(&random)
        case 3: words += ["WHERE"] + test(&random) + ["AND"] + test(&random)
        default: words += ["WHERE"] + test(&random)
        }
        let sorts = paths + ["@key", "@stored", "@expires"]
        if random.below(3) > 0 {
            let chosen = sorts.shuffled(using: &random).prefix(1 + random.below(2))
            words += ["SORT"] + chosen.flatMap { random.oneIn(2) ? [$0] : [$0, "DESC"] }
        }
        if random.oneIn(3) { words += ["SKIP", "\(random.below(4))"] }
        return random.below(3) > 0 ? words + ["LIMIT", "\(1 + random.below(8))"] : words
    }

    private static func change(_ client: TestClient, _ server: SocketlessServer, _ random: inout SeededGenerator) {
        let key = "k\(random.below(120))"
        switch random.below(40) {
        case 0...17: _ = client(["SET", key, document(&random)])
        case 18...21: _ = client(["SET", key, document(&random), "PX", "\(1 + random.below(3000))"])
        case 22, 23: _ = client(["SET", key, document(&random), "TAGS", "1", "t\(random.below(2))"])
        case 24...28: _ = client(["DEL", key])
        case 29: _ = client(["SET", key, "not JSON"])
        case 30: _ = client(["EXPIRE", key, "\(1 + random.below(3))"])
        case 31: _ = client(["PERSIST", key])
        case 32: _ = client(["PURGE", "TAG", "t\(random.below(2))"] + (random.oneIn(2) ? ["SOFT"] : []))
        case 33 where random.oneIn(3): _ = client("PURGE PREFIX k1")
        case 34 where random.oneIn(6): _ = client("PURGE")
        case 35 where random.oneIn(4):
            _ = client(["POLICY", ["never", "high", "2", "low"][random.below(4)]])
        case 36: server.time.stepWall(milliseconds: [-5000, 700][random.below(2)])
        case 37 where random.oneIn(4): server.engine.maintain()
        case 38 where random.oneIn(3): _ = client("SAVE")
        default: server.time.advance(milliseconds: Int64(random.below(900)))
        }
    }

    @Test(.timeLimit(.minutes(5))) func rowsAreThoseOfTheSameQuery() async throws {
        var random = SeededGenerator(seed: testSeed())
        var (sets, outs, resets) = (0, Set<String>(), 0)
        for _ in 0..<6 {
            let server = try SocketlessServer(policy: .never)
            let client = server.connect()
            let database = try server.engine.database("0")
            if random.oneIn(2) { _ = client("INDEX CREATE i ON a b") }
            var readers: [(reader: LiveReader, handle: LiveQueryHandle)] = []
            for _ in 0..<40 {
                for _ in 0..<(1 + random.below(20)) { Self.change(client, server, &random) }
                for _ in 0..<random.below(3) where readers.count < 30 {
                    let reader = LiveReader(Self.query(&random))
                    readers.append((reader, try reader.begin(server.state.live, in: database)))
                }
                if random.oneIn(5), let (reader, handle) = readers.randomElement(using: &random) {
                    reader.change { $0.isSlow.toggle() }
                    if !reader.now.isSlow { handle.resume() }
                }
                if random.oneIn(10), !readers.isEmpty { readers.remove(at: random.below(readers.count)).handle.stop() }
                for (reader, _) in readers where !reader.now.isSlow {
                    var expected: [LiveReader.Row] = []
                    var turns = 0
                    repeat {
                        expected = try reader.fresh(database)
                        if reader.rows == expected { break }
                        try? await Task.sleep(for: .milliseconds(1))
                        turns += 1
                    } while turns < 5000
                    #expect(reader.rows == expected, "\(reader.words)")
                    guard reader.rows == expected, reader.now.problems.isEmpty, reader.now.ended == nil else {
                        Issue.record("\(reader.words): \(reader.now.problems) \(reader.now.ended ?? "")")
                        return
                    }
                }
            }
            for (reader, _) in readers {
                sets += reader.now.sets
                resets += reader.now.resets
                outs.formUnion(reader.outs.compactMap { $0.split(separator: " ").last.map(String.init) })
            }
            readers = []
            await eventually { server.state.live.count == 0 }
        }
        #expect(sets > 1000 && resets > 0)
        #expect(outs.isSuperset(of: ["changed", "removed", "expired", "purged", "moved"]), "\(outs)")
    }
}
