import LarderClient
import LarderRESP
import LarderVocabulary

/// Imports the strings of a Redis into a daemon, while other clients may use both. For one thread at a time.
///
/// A value and its time to live are read in one transaction. The time to live counts from before the request, so no
/// entry expires later than in Redis. Values are read in groups of at most ``groupBytes``.
struct RedisImport {
    struct Report {
        var imported = 0
        /// The number of keys that expired or were removed before they could be read.
        var gone = 0
        /// The number of keys that were not imported, because they exist in the larder and ``keepsExisting`` is set.
        var kept = 0
        /// The number of keys of other types than strings, by type.
        var otherTypes: [String: Int] = [:]
        /// The number of keys that are too long for a larder.
        var tooLong = 0
        /// Examples of keys that were not imported.
        var examples: [String] = []
    }

    let redis: RedisServer
    let client: BlockingLarderClient
    let prefix: [UInt8]
    let keepsExisting: Bool
    let progress = ProgressLine(.entries)
    private(set) var total = 0
    private(set) var done = 0
    private(set) var report = Report()

    private static let groupCount = 128
    private static let groupBytes = 4 << 20
    private static let examplesMax = 5

    /// Returns the numbers of those databases in the Redis that have keys, each with the count of its keys.
    static func databases(_ redis: RedisServer) throws(Failure) -> [(number: Int, keys: Int)] {
        // Each line has the form `db0:keys=1,expires=0`.
        InfoText(try redis.command(["INFO", "keyspace"]).string ?? "").textLists("db").compactMap { number, parts in
            let keys = parts.first { $0.name == "keys" }.flatMap { Int($0.text) }
            return Int(number).map { ($0, keys ?? 0) }
        }
    }

    /// - Parameter databases: for each one, its number in the Redis, the count of its keys, and its name in the larder.
    mutating func run(_ databases: [(number: Int, keys: Int, name: String)]) throws {
        defer { progress.end() }
        total = prefix.isEmpty ? databases.reduce(0) { $0 + $1.keys } : 0
        for database in databases {
            try redis.select(database.number)
            try client.select(database.name)
            try importSelected()
        }
    }

    private mutating func importSelected() throws {
        var cursor = Array("0".utf8)
        repeat {
            let match = prefix.isEmpty ? [] : wordList("MATCH") + [GlobPattern.prefix(prefix)]
            let words = wordList("SCAN") + [cursor] + wordList("COUNT", "512") + match
            let reply = try redis.checked(try redis.exchange([words])[0])
            guard let parts = reply.elements, parts.count == 2, let next = parts[0].bytes, let keys = parts[1].elements
            else { throw Failure.redis("malformed reply to SCAN") }
            try take(keys.compactMap(\.bytes))
            cursor = next
        } while cursor != Array("0".utf8)
    }

    private mutating func take(_ keys: [[UInt8]]) throws {
        let lengths = try redis.exchange(keys.map { wordList("STRLEN") + [$0] })
        let others = zip(keys, lengths).filter { Self.isOtherType($0.1) }.map(\.0)
        var strings: [(key: [UInt8], length: Int)] = []
        for (key, length) in zip(keys, lengths) where !Self.isOtherType(length) {
            let length = Int(try redis.checked(length).int ?? 0)
            if key.count <= StoredEntry.keyBytesMax {
                strings.append((key, length))
            } else {
                report.tooLong += 1
                note(key)
            }
        }
        for group in strings.batches(of: Self.groupCount, bytes: Self.groupBytes, size: \.length) {
            try copy(group.map(\.key))
        }
        try count(others)
        done += keys.count
        progress.show(done: done, total: total)
    }

    private static func isOtherType(_ reply: RESPValue) -> Bool { reply.errorMessage?.hasPrefix("WRONGTYPE") ?? false }

    private mutating func count(_ keys: [[UInt8]]) throws {
        for (key, reply) in zip(keys, try redis.exchange(keys.map { wordList("TYPE") + [$0] })) {
            report.otherTypes[try redis.checked(reply).string ?? "?", default: 0] += 1
            note(key)
        }
    }

    private mutating func note(_ key: [UInt8]) {
        if report.examples.count < Self.examplesMax { report.examples.append(printableKey(key)) }
    }

    private mutating func copy(_ keys: [[UInt8]]) throws {
        let asked = Exporter.now()
        let results = try redis.transaction(keys.flatMap { [wordList("GET") + [$0], wordList("PTTL") + [$0]] })
        let requests = try keys.enumerated().compactMap { index, key in
            try request(key, results[2 * index], results[2 * index + 1], asked)
        }
        for reply in try client.pipeline(requests) {
            if try reply.checked("import").isNull { report.kept += 1 } else { report.imported += 1 }
        }
    }

    /// Returns the command that stores an entry; nil if the entry must not be stored.
    private mutating func request(_ key: [UInt8], _ value: RESPValue, _ life: RESPValue, _ asked: Int64) throws
        -> [[UInt8]]?
    {
        if Self.isOtherType(value) {
            try count([key])
            return nil
        }
        let left = try redis.checked(life).int ?? -2
        guard let bytes = try redis.checked(value).bytes, left > 0 || left == -1 else {
            report.gone += 1
            return nil
        }
        let life = left > 0 ? wordList("PXAT", "\(asked + left)") : []
        return wordList("SET") + [key, bytes] + life + (keepsExisting ? wordList("NX") : [])
    }
}

/// Exports the fresh entries of a daemon to a Redis, while other clients may use both. For one thread at a time.
struct RedisExport {
    struct Report {
        var exported = 0
        /// Stale entries, which were not exported, because Redis has none.
        var stale = 0
        var databases = 0
    }

    let redis: RedisServer
    let reader: EntryReader
    /// The approximate number of entries to export; 0 if unknown.
    let total: Int
    let progress = ProgressLine(.entries)
    private(set) var report = Report()

    private static let batchCount = 256
    private static let batchBytes = 1 << 20

    mutating func run(_ databases: [(name: String, number: Int)]) throws {
        defer { progress.end() }
        // First select each database number, so that an invalid one is reported before anything is stored.
        for database in databases { try redis.select(database.number) }
        for database in databases {
            try redis.select(database.number)
            try reader.client.select(database.name)
            try reader.forEachStep { entries in
                try store(entries)
                progress.show(done: report.exported + report.stale, total: total)
            }
            report.databases += 1
        }
    }

    private mutating func store(_ entries: [StoredEntry]) throws(Failure) {
        for batch in entries.batches(of: Self.batchCount, bytes: Self.batchBytes, size: \.value.count) {
            let now = Exporter.now()
            let fresh = batch.filter { $0.deadline < 0 || $0.deadline > now }
            report.stale += batch.count - fresh.count
            let requests = fresh.map { entry in
                wordList("SET") + [entry.key, entry.value]
                    + (entry.deadline < 0 ? [] : wordList("PX", "\(entry.deadline - now)"))
            }
            for reply in try redis.exchange(requests) {
                try redis.checked(reply)
                report.exported += 1
            }
        }
    }
}

extension Array {
    /// Splits the array into parts of at most `count` elements, which have at most `bytes` bytes together, or are a
    /// single element.
    fileprivate func batches(of count: Int, bytes: Int, size: (Element) -> Int) -> [ArraySlice<Element>] {
        var (batches, start, sum) = ([ArraySlice<Element>](), 0, 0)
        for index in indices {
            let next = size(self[index])
            if index > start, index - start == count || sum + next > bytes {
                batches.append(self[start..<index])
                (start, sum) = (index, 0)
            }
            sum += next
        }
        return isEmpty ? [] : batches + [self[start...]]
    }
}

/// Maps the databases of a larder to those of a Redis: to the same number, or as given by `--map`.
struct DatabaseMap {
    private var names: [Int: String] = [:]
    private var numbers: [String: Int] = [:]

    /// The highest number of a Larder database.
    private static let numbersMax = 15

    /// - Parameters:
    ///   - options: the values of `--map`: each is `NAME=NUMBER` or `NUMBER=NAME`.
    ///   - isNumberFirst: whether the values are `NUMBER=NAME`.
    init(_ options: [String], isNumberFirst: Bool) throws(UsageError) {
        let form = isNumberFirst ? "NUMBER=NAME" : "NAME=NUMBER"
        for option in options {
            let parts = option.split(separator: "=", omittingEmptySubsequences: false)
            guard parts.count == 2, let number = Int(isNumberFirst ? parts[0] : parts[1]), number >= 0,
                case let name = String(isNumberFirst ? parts[1] : parts[0]), !name.isEmpty
            else { throw UsageError("--map must be \(form), with a Redis database number, not '\(option)'") }
            guard names.updateValue(name, forKey: number) == nil, numbers.updateValue(number, forKey: name) == nil
            else { throw UsageError("--map \(option): the number or the name is mapped already") }
        }
    }

    /// The numbers in `--map`, in ascending order.
    var mappedNumbers: [Int] { names.keys.sorted() }

    /// The names in `--map`, in ascending order.
    var mappedNames: [String] { numbers.keys.sorted() }

    /// - Throws: an error that names two databases if both have the same target: their entries would be mixed.
    static func checkTargets<Source, Target: Hashable>(_ databases: [(source: Source, target: Target)])
        throws(UsageError)
    {
        var sources: [Target: Source] = [:]
        for (source, target) in databases {
            guard let other = sources.updateValue(source, forKey: target) else { continue }
            throw UsageError("the databases '\(other)' and '\(source)' would both become '\(target)': see --map")
        }
    }

    /// Returns the database of the larder for a database number of the Redis.
    func name(_ number: Int) throws(UsageError) -> String {
        if let name = names[number] { return name }
        guard number <= Self.numbersMax else {
            throw UsageError(
                "the Redis has a database \(number), but numbers here end at \(Self.numbersMax): map it to a name with --map "
                    + "\(number)=NAME")
        }
        return "\(number)"
    }

    /// Returns the database number of the Redis for a database of the larder.
    func number(_ name: String) throws(UsageError) -> Int {
        if let number = numbers[name] ?? Int(name) { return number }
        throw UsageError(
            "Redis databases have numbers: map '\(printableKey(name.utf8))' to one with --map \(name)=NUMBER")
    }
}
