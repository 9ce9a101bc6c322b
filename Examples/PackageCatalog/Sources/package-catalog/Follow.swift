import Larder
import PackageRecords

/// `follow`: follows the first packages that depend on a given package, while one more is stored and removed.
enum Follow {
    static func run(_ arguments: inout Arguments) async throws {
        let limit = try arguments.number("--limit", default: 3, in: 1...1000)
        let cache = try Databases.open(&arguments)
        let name = try arguments.word("a package")
        try arguments.end()
        let query = cache.query(PackageRecord.self).where(\.needs, contains: name).sorted(by: \.name).limit(limit)
        var list: [ModelRow<PackageRecord>] = []
        var steps = 0
        for try await change in cache.live(query) {
            guard list.apply(change.difference), list.map(\.value) == (try await query.values()) else {
                throw Catalog.NotFound(message: "the differences do not lead to the result of the query")
            }
            for removal in change.removals { Console.out("  - \(removal.key) (\(removal.reason))") }
            Console.out("  " + list.map(\.key).joined(separator: ", "))
            guard var first = list.first?.value else {
                throw Catalog.NotFound(message: "no package needs '\(name)'")
            }
            steps += 1
            if steps == 1 {
                first.name = "0-new"
                Console.out("\(first.name) is stored, which needs \(name) too:")
                try await cache.set(first, forKey: "0-new")
            } else if steps == 2 {
                Console.out("It is removed:")
                try await cache.remove("0-new")
            } else {
                return
            }
        }
    }
}
