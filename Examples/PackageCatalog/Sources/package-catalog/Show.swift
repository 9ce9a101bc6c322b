import Larder
import PackageRecords

/// `show`: one package, in full.
enum Show {
    /// A record with its age and remaining time.
    struct Found {
        var record: PackageRecord
        var key: String
        var age: Duration
        /// Nil if the record does not expire.
        var timeToLive: Duration?
        var policy: String
    }

    static func run(_ arguments: inout Arguments) throws {
        let language = arguments.option("--language") ?? "en"
        let found: Found
        if let socket = arguments.option("--socket") {
            let database = arguments.option("--database") ?? Databases.installed
            let key = try arguments.word("a key")
            try arguments.end()
            found = try RemoteCatalog.find(key, database: database, socketPath: socket)
        } else {
            let cache = try Databases.open(&arguments)
            let name = try arguments.word("a package")
            try arguments.end()
            found = try find(name, in: cache)
        }
        show(found, language)
    }

    /// Finds a package by its key, or by its name, which is the first part of its keys.
    static func find(_ name: String, in cache: some CacheReading) throws -> Found {
        let prefix = name.contains(":") ? name : name + ":"
        let entries = try cache.entries(of: PackageRecord.self, EntryOptions(prefix: prefix)).makeIterator()
        guard let entry = try entries.next() else {
            throw Catalog.NotFound(message: "'\(name)' is not in the database '\(cache.name)'")
        }
        let info = try entry.info()
        return Found(
            record: try entry.value(), key: entry.key, age: info.age, timeToLive: info.timeToLive,
            policy: cache.policy.description)
    }

    private static func show(_ found: Found, _ language: String) {
        let record = found.record
        Console.out("\(found.key)  version \(record.version)")
        let description = record.descriptions[language] ?? record.descriptions["en"]
        let facts = [
            record.section.map { "section \($0)" }, record.priority.map { "priority \($0)" },
            record.isEssential ? "essential" : nil,
            record.installedBytes.map { "\(Format.bytes($0)) installed" },
            record.downloadBytes.map { "\(Format.bytes($0)) to download" }, record.status,
        ]
        Console.out("  " + facts.compactMap { $0 }.joined(separator: ", "))
        for kind in Relation.Kind.allCases {
            guard let relations = record.relations[kind] else { continue }
            Console.out("  \(kind.rawValue): \(relations.map(\.description).joined(separator: ", "))")
        }
        for (code, description) in record.descriptions.sorted(by: { $0.key < $1.key }) {
            Console.out("  \(code): \(description.summary)")
        }
        let rest = found.timeToLive.map { "fresh for another \(Format.span($0))" } ?? "does not expire"
        Console.out("  stored \(Format.span(found.age)) ago, \(rest) (policy \(found.policy))")
        for line in (description?.text ?? "").split(separator: "\n", omittingEmptySubsequences: false) {
            Console.out("    \(line)")
        }
    }
}
