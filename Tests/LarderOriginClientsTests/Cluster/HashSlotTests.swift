import LarderRESP
import LarderTestSupport
import Testing

@testable import LarderOriginClients

@Suite struct HashSlotTests {
    /// The slots that CLUSTER KEYSLOT returns.
    @Test(arguments: [
        ("123456789", 12_739), ("foo", 12_182), ("{foo}bar", 12_182), ("a{foo}{bar}", 12_182), ("", 0),
        ("foo{}{bar}", 8363),
        ("{", 4092),
    ]) func keysHaveTheHashSlotsOfRedis(_ key: String, _ slot: Int) { #expect(HashSlot.of(Array(key.utf8)) == slot) }

    @Test func randomKeysHaveTheSameHashSlotsAsInRedis() async throws {
        var random = SeededGenerator(seed: 15)
        let redis = try RedisProcess(["--cluster-enabled", "yes", "--port", "0"])
        let client = try redis.connect()
        for _ in 0..<300 {
            let alphabet = Array("ab{}x".utf8)
            let key = (0..<Int.random(in: 1...8, using: &random)).map { _ in alphabet.randomElement(using: &random)! }
            let reply = try client.call(["CLUSTER", "KEYSLOT", String(decoding: key, as: UTF8.self)])
            #expect(String(decoding: reply, as: UTF8.self) == ":\(HashSlot.of(key))\r\n", "\(key)")
        }
    }

    @Test func movedAndAskRedirectionsAreParsed() throws {
        let seed = OriginEndpoint.tcp(host: "seed", port: 1)
        let moved = try #require(Redirection("MOVED 3999 127.0.0.1:6381", asked: seed))
        #expect(!moved.isAsk && moved.slot == 3999 && moved.endpoint == .tcp(host: "127.0.0.1", port: 6381))
        #expect(Redirection("ASK 1 :7", asked: seed)?.endpoint == .tcp(host: "seed", port: 7))
        #expect(Redirection("MOVED 1 ::1:7", asked: seed)?.endpoint == .tcp(host: "::1", port: 7))
        for text in ["MOVED", "MOVED 1", "MOVED x h:1", "MOVED 16384 h:1", "MOVED 1 h", "MOVED 1 h:0", "ERR 1 h:1"] {
            #expect(Redirection(text, asked: seed) == nil, "\(text)")
        }
    }

    @Test func slotMapsAreParsed() throws {
        let seed = OriginEndpoint.tcp(host: "seed", port: 1)
        func node(_ host: RESPValue, _ port: Int64) -> RESPValue {
            .array([host, .integer(port), .bulk(Array("id".utf8)), .array([])])
        }
        let map = try #require(
            SlotMap(
                .array([
                    .array([.integer(0), .integer(99), node(.bulk(Array("h".utf8)), 7), node(.null, 8)]),
                    .array([.integer(100), .integer(16_383), node(.bulk(Array("?".utf8)), 7)]),
                ]), asked: seed))
        #expect(map.ranges.count == 1 && map.ranges[0].slots == 0...99)
        #expect(map.ranges[0].primary == .tcp(host: "h", port: 7))
        #expect(map.ranges[0].replicas == [.tcp(host: "seed", port: 8)])
        for bad: RESPValue in [
            .null, .array([.integer(1)]), .array([.array([.integer(5), .integer(1), node(.null, 1)])]),
            .array([.array([.integer(0), .integer(16_384), node(.null, 1)])]),
        ] { #expect(SlotMap(bad, asked: seed) == nil) }
        #expect(SlotMap(.array([]), asked: seed)?.ranges.isEmpty == true)
    }

    @Test func theSlotsInAServersDescriptionAreParsed() {
        let text = """
            aa 127.0.0.1:1@2 master - 0 1 2 connected 100-200
            bb 127.0.0.1:3@4 myself,master - 0 1 2 connected 0-99 [5->-aa]

            """
        #expect(ClusterSelf.description(.bulk(Array(text.utf8))) == "primary 0-99 [5->-aa]")
        #expect(ClusterSelf.servers(.bulk(Array(text.utf8))) == 2)
        #expect(ClusterSelf.description(.null) == nil)
    }

    @Test func comparingDescriptionsFindsOnlySlotsThatMoved() {
        func between(_ old: String, _ new: String) -> [Int]? { ClusterSelf.slots(between: old, and: new)?.sorted() }
        #expect(between("primary 0-99 200", "primary 0-98 200") == [99])
        #expect(between("primary 0-99", "primary 1-99 300-301") == [0, 300, 301])
        #expect(between("primary 0-99", "primary 0-99 [7->-aa]") == [7])
        #expect(between("primary 0-99 [7->-aa]", "primary 0-6 8-99") == [7])
        #expect(between("primary 0-99 [7->-aa]", "primary 0-99 [7->-bb] [500-<-cc]") == [7, 500])
        #expect(between("primary 0-99", "primary ") == Array(0...99))
        #expect(between("primary 0-99", "replica ") == nil, "its role")
        #expect(between("replica ", "primary 0-99") == nil)
        for bad in ["primary x", "primary 5-1", "primary 0-16384", "primary 1-2-3", "primary -1", "primary [x->-a]"] {
            #expect(between("primary 0-99", bad) == nil, "\(bad)")
        }
    }
}
