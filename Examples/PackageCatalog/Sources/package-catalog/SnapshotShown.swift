import Larder
import PackageRecords

/// `snapshot`: reads a package before and after a write, from the database and from a snapshot taken before the write.
/// Fails if the snapshot contains the write.
enum SnapshotShown {
    static func run(_ arguments: inout Arguments) throws {
        let cache = try Databases.open(&arguments)
        let name = try arguments.word("a package")
        try arguments.end()
        let found = try Show.find(name, in: cache)
        let snapshot = try cache.snapshot()
        let countBefore = try snapshot.count()

        var changed = found.record
        changed.version += "+changed"
        try cache.batch {
            try $0.set(changed, forKey: found.key)
            try $0.set(changed, forKey: "larder-example:all")
        }
        let now = try cache.value(PackageRecord.self, forKey: found.key)?.version
        let then = try snapshot.value(PackageRecord.self, forKey: found.key)?.version
        let (countNow, countThen) = (try cache.count(), try snapshot.count())
        // Restore the previous state: this is the machine's own data.
        try cache.batch {
            try $0.set(found.record, forKey: found.key)
            $0.remove("larder-example:all")
        }

        Console.out("  snapshot taken: \(found.key) is at \(found.record.version), \(countBefore) entries")
        Console.out("  written after it, in one batch: another version of \(found.key), and a new entry")
        Console.out("  the database says: \(now ?? "nothing"), \(countNow) entries")
        Console.out("  the snapshot says: \(then ?? "nothing"), \(countThen) entries")
        guard now == changed.version, then == found.record.version, countThen == countBefore,
            countNow == countBefore + 1
        else { throw Catalog.NotFound(message: "the snapshot has changed, or the database has not") }
    }
}
