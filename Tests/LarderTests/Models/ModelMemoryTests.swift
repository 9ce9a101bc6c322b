#if os(Linux)
    import Foundation
    import Larder
    import LarderTestSupport
    import Testing

    /// A model that takes much more memory than its text.
    private struct Wide: Codable, Sendable {
        var a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p: String?
    }

    private struct Labels: Codable, Sendable { var labels: Set<String> }
    private struct Numbered: Codable, Sendable { var fields: [Int: Wide?] }
    private indirect enum Tree: Codable, Sendable {
        case leaf(Wide?, Wide?)
        case fork(left: Tree, right: Tree)
    }

    private final class Node: Codable, Sendable {
        let wide: Wide?
        let more: Wide?
        let next: [Node]
        let label: String?
    }
    private struct Linked: Codable, Sendable { var first: Node }

    /// A model whose initializer allocates memory that the decoder does not see.
    private struct Swollen: Codable, Sendable {
        var number: Int
        var table: [[UInt8]]

        private enum CodingKeys: CodingKey { case number }

        init(from decoder: any Decoder) throws {
            let number = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .number)
            self.number = number
            table = (0..<4).map { _ in Array(repeating: UInt8(truncatingIfNeeded: number), count: 60_000) }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(number, forKey: .number)
        }
    }
    private struct SwollenList: Codable, Sendable { var swollen: [Swollen] }

    /// A model that is decoded by a custom codec, so that the relation between encoded and decoded size is unknown.
    private struct Packed: Codable, Sendable {
        var pixels: [UInt8]
        var names: [String]
    }

    /// Tests that decoded models of any shape stay within their share of the allowed memory. A separate process fills
    /// the memory and measures its resident size.
    @Suite(.serialized, .timeLimit(.minutes(10)), .disabled(if: TestSetting.sanitized.isSet)) struct ModelMemoryTests {
        private static let memoryBytes = 16 << 20

        /// Returns the resident memory of the process, in bytes.
        private static func resident() throws -> Int {
            let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
            return (Int(fields[1]) ?? .max / 4096) * 4096
        }

        /// Exits with an error if the process uses much more memory than at the start plus an allowed amount. That
        /// amount is for the budget, entries not yet in LevelDB, LevelDB's own memory, and the allocator's overhead.
        private static func check(_ what: Any.Type, _ before: Int) throws {
            let grown = try resident() - before
            precondition(grown < 3 * memoryBytes, "\(what): \(grown >> 20) MiB more")
        }

        private static let atStart = Result { try resident() }

        /// Stores `text` under many keys, reads all of them as `type` several times, and compares the memory use with
        /// the limit.
        private static func fill<Model: Codable & Sendable>(
            _ type: Model.Type, _ text: String, codec: ModelCodec = .json, stored: [UInt8]? = nil
        ) throws {
            let before = try atStart.get()
            let work = try Workspace()
            let cache = try work.cache {
                $0.memoryBytes = memoryBytes
                $0.blockCacheBytes = 0
                $0.codec = codec
            }
            let bytes = stored ?? Array(text.utf8)
            let count = min(1_000, (2 << 20) / (bytes.count + 200) + 1)
            // A value stored as a model is decoded in another way than a value stored as bytes.
            let model = stored == nil ? try JSONDecoder().decode(type, from: Data(bytes)) : nil
            for number in 0..<count {
                if let model, number % 2 == 0 {
                    try cache.set(model, forKey: "k\(number)")
                } else {
                    try cache.setBytes(bytes, forKey: "k\(number)")
                }
            }
            for round in 0..<2 {
                for number in 0..<count {
                    let model = try cache.value(type, forKey: "k\(number)")
                    precondition(model != nil)
                }
                if round == 0 { try cache.sweep() }
                try check(type, before)
            }
            cache.close()
        }

        @Test func arraysOfEmptyElementsStayWithinTheMemoryLimit() async {
            await #expect(processExitsWith: .success) {
                let nulls = "[" + Array(repeating: "null", count: 1_000).joined(separator: ",") + "]"
                try Self.fill([Wide?].self, nulls)
                try Self.fill([Int?].self, nulls)
                try Self.fill([[Int]].self, nulls.replacing("null", with: "[]"))
                try Self.fill([[[Wide]]].self, nulls.replacing("null", with: "[[]]"))
                try Self.fill([Wide].self, nulls.replacing("null", with: "{}"))
                try Self.fill(ContiguousArray<Wide?>.self, nulls)
            }
        }

        @Test func collectionsAndTextsStayWithinTheMemoryLimit() async {
            await #expect(processExitsWith: .success) {
                let fields = (0..<300).map { "\"\($0)\":null" }.joined(separator: ",")
                try Self.fill([String: Wide?].self, "{\(fields)}")
                try Self.fill([String: [String: Int]].self, "{\(fields.replacing("null", with: "{}"))}")
                try Self.fill(Numbered.self, "{\"fields\":{\(fields)}}")
                let names = (0..<300).map { "\"a name of some length, \($0)\"" }.joined(separator: ",")
                try Self.fill(Labels.self, "{\"labels\":[\(names)]}")
                try Self.fill([String].self, "[\(names)]")
                try Self.fill([String].self, "[\"" + String(repeating: "long ", count: 5_000) + "\"]")
                try Self.fill(Set<Int>.self, "[" + (0..<1000).map(String.init).joined(separator: ",") + "]")
                try Self.fill(
                    [Data].self,
                    "[" + (0..<200).map { _ in "\"AAAAAAAAAAAAAAAAAAAAAAAA\"" }.joined(separator: ",") + "]")
                try Self.fill([URL].self, "[" + (0..<100).map { "\"a://b/\($0)\"" }.joined(separator: ",") + "]")
            }
        }

        @Test func objectsAndTreesStayWithinTheMemoryLimit() async {
            await #expect(processExitsWith: .success) {
                let leaf = "{\"leaf\":{}}"
                let fork = (0..<7).reduce(leaf) { tree, _ in "{\"fork\":{\"left\":\(tree),\"right\":\(tree)}}" }
                try Self.fill(Tree.self, fork)
                let node = (0..<4).reduce("{\"next\":[]}") { node, _ in "{\"next\":[\(node),\(node),\(node)]}" }
                try Self.fill(Linked.self, "{\"first\":\(node)}")
            }
        }

        @Test func modelsLargerThanTheirEncodingStayWithinTheMemoryLimit() async {
            await #expect(processExitsWith: .success) {
                try Self.fill(Swollen.self, "{\"number\":1}")
                try Self.fill(SwollenList.self, "{\"swollen\":[{\"number\":1},{\"number\":2}]}")
                try Self.fill([Swollen].self, "[{\"number\":1},{\"number\":2},{\"number\":3}]")
            }
        }

        @Test func modelsOfOtherCodecsStayWithinTheMemoryLimit() async {
            await #expect(processExitsWith: .success) {
                let before = try Self.resident()
                let codec = ModelCodec.custom(
                    encode: { _ in [1] },
                    decode: { _, bytes in
                        Packed(
                            pixels: Array(repeating: bytes.first ?? 0, count: 50_000),
                            names: Array(repeating: "x", count: 100))
                    })
                let work = try Workspace()
                let cache = try work.cache {
                    $0.memoryBytes = Self.memoryBytes
                    $0.codec = codec
                }
                for number in 0..<1_000 {
                    try cache.set(Packed(pixels: [], names: []), forKey: "k\(number)")
                    _ = try cache.value(Packed.self, forKey: "k\(number)")
                }
                try Self.check(Packed.self, before)
                let list = try PropertyListEncoder().encode(["list": Array(repeating: [Int](), count: 2_000)])
                let plain = try work.cache("lists") {
                    $0.memoryBytes = Self.memoryBytes
                    $0.codec = .propertyList
                }
                let value = try PropertyListDecoder().decode([String: [[Int]]].self, from: list)
                for number in 0..<1_000 {
                    try plain.set(value, forKey: "k\(number)")
                    _ = try plain.value([String: [[Int]]].self, forKey: "k\(number)")
                }
                try Self.check([[Int]].self, before)
            }
        }
    }
#endif
