import Larder
import PackageRecords

/// `needs`: finds the packages that depend on a given package, through an index. Then it finds them once more by
/// decoding all models, and compares the times.
enum Needs {
    static func run(_ arguments: inout Arguments) throws {
        let limit = try arguments.number("--limit", default: 10, in: 1...1_000_000)
        let cache = try Databases.open(&arguments)
        let name = try arguments.word("a package")
        try arguments.end()
        let query = cache.query(PackageRecord.self).where(\.needs, contains: name)
        for record in try query.sorted(by: \.name).limit(limit).values() {
            Console.out("  \(record.installedKey)  \(record.need(of: name)?.description ?? "")")
        }
        let (count, time) = try Format.timed { try query.count() }
        let (scanned, scanTime) = try Format.timed {
            try cache.query(PackageRecord.self).filter { $0.need(of: name) != nil }.scan().count()
        }
        Console.out(
            "\(Format.count(count)) packages need \(name): counted in \(Format.milliseconds(time)) through an index, "
                + "\(Format.milliseconds(scanTime)) without")
        guard count == scanned else { throw Catalog.NotFound(message: "\(scanned) packages need \(name)") }
        if count == 0 { throw Catalog.NotFound(message: "no package needs '\(name)'") }
    }
}

extension PackageRecord {
    /// The first relation that makes this package depend on another one; nil if there is none.
    fileprivate func need(of name: String) -> Relation? {
        for kind in [Relation.Kind.preDepends, .depends] {
            for relation in relations[kind] ?? [] where relation.alternatives.contains(where: { $0.name == name }) {
                return relation
            }
        }
        return nil
    }
}
