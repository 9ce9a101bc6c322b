import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// A copy of a database that is built only from the feed of changes.
struct FeedCopy {
    struct Entry: Equatable {
        var value: String
        var deadline: Int64?
        var tags: Set<String>
    }

    var position = FeedPosition.beginning
    var prefix: [UInt8] = []
    var entries: [[UInt8]: Entry] = [:]
    var passes = 0

    /// Applies the next changes of the feed.
    /// - Returns: whether there are no more changes for now.
    mutating func step(_ database: Database, count: Int = 100, bytes: Int = 1 << 20) throws -> Bool {
        var options = FeedOptions()
        options.prefix = prefix
        (options.count, options.bytes) = (count, bytes)
        let step = try database.feed.step(since: position, options)
        // Converts the position to text and back, as a client does.
        let text = step.position.description
        position = try #require(FeedPosition(text))
        #expect(position == step.position, "\(text)")
        if step.reason != nil { passes += 1 }
        var named: Set<[UInt8]> = []
        for item in step.changes {
            switch item.change {
            case .stored(let entry):
                #expect(entry.key.starts(with: prefix))
                named.insert(entry.key)
                let tags = (entry.record.tags?.all ?? []).map { String(decoding: $0, as: UTF8.self) }
                entries[entry.key] = Entry(value: entry.record.text, deadline: entry.deadline, tags: Set(tags))
            case .removed(let key): entries[key] = nil
            case .purged: entries = [:]
            case .purgedPrefix(let purged):
                #expect(purged.starts(with: prefix) || prefix.starts(with: purged))
                entries = entries.filter { !$0.key.starts(with: purged) }
            case .purgedTags(let tags):
                let purged = Set(tags.map { String(decoding: $0, as: UTF8.self) })
                entries = entries.filter { $0.value.tags.isDisjoint(with: purged) }
            }
        }
        if let range = step.range {
            entries = entries.filter { entry in
                let isBehind = range.after.map { $0.lexicographicallyPrecedes(entry.key) } ?? true
                let isUpTo = range.through.map { !$0.lexicographicallyPrecedes(entry.key) } ?? true
                return !(isBehind && isUpTo) || named.contains(entry.key)
            }
        }
        return step.state == .current
    }

    func fresh(_ now: Int64) -> [String: String] {
        var fresh: [String: String] = [:]
        for (key, entry) in entries where entry.deadline.map({ now < $0 }) ?? true {
            fresh[String(decoding: key, as: UTF8.self)] = entry.value
        }
        return fresh
    }
}

/// Generates random changes of all kinds.
enum FeedHistory {
    static func put(_ database: Database, _ key: String, _ value: String, tags: [String], lives: Int64?) throws {
        let tags = try Tags(checking: tags.map { Array($0.utf8) })
        try database.commit([Key(key)], loading: .none) { update in
            let rule = lives.map { DeadlineRule.own(update.now + $0) } ?? .governed
            Array(value.utf8).withUnsafeBytes { update.put(0, payload: $0, rule: rule, tags: tags) }
        }
    }

    /// Performs one step of a random history.
    static func act(
        _ larder: TestLarder, _ random: inout SeededGenerator, _ number: Int, restarts: Bool = true
    ) throws {
        let database = try larder.database(policy: .high)
        let key = ["", "a", "ab", "b"][random.below(4)] + "\(random.below(12))"
        switch random.below(40) {
        case 0: _ = try database.purge(.all(counting: random.oneIn(2)))
        case 1: _ = try database.purge(.prefix(Array("a".utf8)))
        case 2, 3: try database.purge(.tags([Array("t\(random.below(3))".utf8)], soft: random.oneIn(3)))
        case 4: larder.time.advance(milliseconds: Int64(random.below(20_000)))
        case 5: try larder.maintain()
        case 6: try larder.engine().save()
        case 7 where restarts && random.oneIn(4): larder.close()
        case 8 where random.oneIn(2):
            let other = try larder.database("other", policy: .high)
            try other.put(key, "other \(number)")
            try larder.engine().exchange(database, other, entriesMax: 1000, bytesMax: 1 << 20)
        case 9 where random.oneIn(3): _ = try larder.engine().deleteDatabase("books")
        case 10..<18: try database.remove(key)
        case 18..<24:
            try put(database, key, "\(number)", tags: [], lives: Int64(1 + random.below(30_000)))
        case 24..<30:
            try put(
                database, key, "\(number)", tags: ["t\(random.below(3))", "t\(random.below(3))"], lives: nil)
        default: try database.put(key, String(repeating: "\(number) ", count: 1 + random.below(3)))
        }
    }
}
