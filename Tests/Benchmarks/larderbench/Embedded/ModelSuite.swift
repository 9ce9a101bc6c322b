import Larder
import LarderPlatform

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Stores and reads Codable models: with the JSON coders alone, with these and LevelDB's C functions, and with Larder.
final class ModelSuite: Suite {
    /// About 100 bytes of JSON.
    struct Package: Codable, Equatable {
        var name: String
        var version: String
        var section: String
        var installedSize: Int
        var isEssential: Bool

        init(_ index: Int) {
            name = "libexample\(index)-dev"
            version = "1.\(index % 100)-4"
            section = "libdevel"
            installedSize = index * 37
            isEssential = index % 50 == 0
        }
    }

    static let putTable = "Embedded: put of a Codable model, about 100 B of JSON"
    static let getTable = "Embedded: get of a Codable model, about 100 B of JSON, first time"
    static let againTable = "Embedded: get of a Codable model, about 100 B of JSON, second time"
    static let hotTable = "Embedded: get of a Codable model, about 100 B of JSON, 1000 hot keys again and again"
    static let coders = "JSONEncoder and JSONDecoder alone"
    static let raw = "LevelDB C with the JSON coders"
    static let cache = "Larder Cache, models, memory tier"

    private let tree: TemporaryTree
    private let order: [Int]
    /// As many reads as in `order`, but of only 1000 models, which fit into the CPU caches.
    private let hotOrder: [Int]
    /// The order of reads for each table of gets.
    private var gets: [(table: String, order: [Int])] {
        [(Self.getTable, order), (Self.againTable, order), (Self.hotTable, hotOrder)]
    }

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.tree = tree
        var generator = SplitMix(seed: 7)
        let order = (0..<Entries.count).shuffled(using: &generator)
        self.order = order
        hotOrder = order.indices.map { order[$0 % 1000] }
    }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        Progress.note("  embedded, models")
        let models = order.indices.map(Package.init)
        let keys = order.indices.map(Keys.text)
        do {
            try measureCoders(models, order, into: results)
            try Interruption.check()
            try measureRaw(tree, models, order, into: results)
            try Interruption.check()
            try measureCache(tree, models, keys, order, into: results)
        } catch {
            try Interruption.check()
            results.fail("models", error)
        }
    }

    private func measureCoders(_ models: [Package], _ order: [Int], into results: Results) throws {
        let encoder = JSONEncoder()
        let decoder = JSONDecoder()
        var encoded: [Data] = []
        encoded.reserveCapacity(models.count)
        results.add(
            Self.putTable, Self.coders,
            try Stopwatch.measure(operations: order.count) {
                for model in models { encoded.append(try encoder.encode(model)) }
            })
        for (table, order) in gets {
            results.add(
                table, Self.coders,
                try Stopwatch.measure(operations: order.count) {
                    for index in order {
                        try check(try decoder.decode(Package.self, from: encoded[index]), models[index])
                    }
                })
        }
    }

    private func measureRaw(
        _ tree: TemporaryTree, _ models: [Package], _ order: [Int], into results: Results
    ) throws {
        let directory = try tree.makeDirectory("embedded")
        defer { TemporaryTree.remove(directory) }
        let entries = Entries(valueBytes: 1)
        let store = try RawStore(directory, entries)
        let encoder = JSONEncoder()
        let decoder = JSONDecoder()
        results.add(
            Self.putTable, Self.raw,
            try Stopwatch.measure(operations: order.count) {
                for index in order { try store.put(entries.keys[index], [UInt8](try encoder.encode(models[index]))) }
            })
        for (table, order) in gets {
            results.add(
                table, Self.raw,
                try Stopwatch.measure(operations: order.count) {
                    for index in order {
                        let model = try store.withValue(entries.keys[index]) { bytes in
                            try bytes.map { try decoder.decode(Package.self, from: Data($0)) }
                        }
                        try check(model, models[index])
                    }
                })
        }
        store.close()
    }

    private func measureCache(
        _ tree: TemporaryTree, _ models: [Package], _ keys: [String], _ order: [Int], into results: Results
    ) throws {
        let directory = try tree.makeDirectory("embedded")
        defer { TemporaryTree.remove(directory) }
        let cache = try CacheStore.open(directory)
        results.add(
            Self.putTable, Self.cache,
            try Stopwatch.measure(operations: order.count, writeOut: { try cache.snapshot().close() }) {
                for index in order { try cache.set(models[index], forKey: keys[index]) }
            })
        for (table, order) in gets {
            results.add(
                table, Self.cache,
                try Stopwatch.measure(operations: order.count) {
                    for index in order {
                        try check(try cache.value(Package.self, forKey: keys[index]), models[index])
                    }
                })
        }
        cache.close()
    }

    /// Checks that the stored model was read. Compares only one field, which costs almost nothing.
    private func check(_ model: Package?, _ expected: Package) throws(BenchError) {
        guard model?.installedSize == expected.installedSize else { throw BenchError("a model was read wrong") }
    }
}
