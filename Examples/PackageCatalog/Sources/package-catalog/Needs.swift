import Larder
import PackageRecords

/// `needs`: finds the packages that depend on a given package, by searching the nested lists of all packages.
enum Needs {
    static func run(_ arguments: inout Arguments) throws {
        let cache = try Databases.open(&arguments)
        let name = try arguments.word("a package")
        try arguments.end()
        var count = 0
        let entries = try cache.entries(of: PackageRecord.self).makeIterator()
        while let entry = try entries.next() {
            guard let relation = try entry.value().need(of: name) else { continue }
            count += 1
            Console.out("  \(entry.key)  \(relation)")
        }
        Console.out("\(Format.count(count)) packages need \(name)")
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
