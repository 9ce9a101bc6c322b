import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// Commands that move or copy an entry to another key or database; also SWAPDB and RANDOMKEY.
extension CommandTable {
    static let movingPlanners: Planners = [
        .rename: { words throws(CommandError) in try rename(words, onlyIfAbsent: false) },
        .renamenx: { words throws(CommandError) in try rename(words, onlyIfAbsent: true) },
        .copy: copy,
        .move: move,
    ]

    static let movingCommands: Handlers = [
        .swapdb: swapdb,
        .randomkey: randomkey,
    ]

    private static func rename(_ words: CallWords, onlyIfAbsent: Bool) throws(CommandError) -> EntryPlan {
        let keys = try words.keys(from: 1)
        let isSame = keys[0] == keys[1]
        return .change(
            ChangePlan(keys: keys) { (update, _) throws(CommandError) in
                guard let record = update.current(0) else { throw CommandError("ERR no such key") }
                if isSame { return onlyIfAbsent ? .integer(0) : .ok }
                if onlyIfAbsent, update.isFresh(1) { return .integer(0) }
                update.remove(0)
                update.place(1, record)
                return onlyIfAbsent ? .integer(1) : .ok
            })
    }

    @Sendable private static func copy(_ words: CallWords) throws(CommandError) -> EntryPlan {
        var target: Int?
        var replaces = false
        var options = OptionReader(words, from: 3)
        while let name = options.next() {
            switch name {
            case "replace": replaces = true
            case "db":
                let index = try options.value()
                try checkDatabase(words, index)
                target = index
            default: throw .syntax
            }
        }
        return .transfer(
            TransferPlan(
                key: try words.key(1), target: target, targetKey: try words.key(2), removes: false, replaces: replaces))
    }

    @Sendable private static func move(_ words: CallWords) throws(CommandError) -> EntryPlan {
        try checkDatabase(words, 2)
        let key = try words.key(1)
        return .transfer(TransferPlan(key: key, target: 2, targetKey: key, removes: true, replaces: false))
    }

    @Sendable private static func swapdb(_ call: inout Call) throws(CommandError) -> Outcome {
        let names = [call.text(1), call.text(2)]
        for (index, which) in [(1, "first"), (2, "second")] {
            let isNumber = parseInteger(call.bytes(index)).map { Int32(exactly: $0) != nil } ?? false
            guard isNumber || DatabaseName.isValid(names[index - 1]) else {
                throw CommandError("ERR invalid \(which) DB index")
            }
        }
        let databases = [try database(call, 1), try database(call, 2)]
        for database in databases { try call.checkMayExchange(database) }
        let engine = call.server.engine
        return .okLater { () throws(CommandError) in
            try CommandError.wrap(
                engine.exchange(
                    databases[0], databases[1], entriesMax: CommandMetadata.exchangedEntriesMax,
                    bytesMax: CommandMetadata.exchangedBytesMax))
        }
    }

    /// Throws if a number does not name a database. As in Redis, only the numbers 0 to 15 do.
    static func checkDatabaseNumber(_ number: Int64) throws(CommandError) {
        guard Int32(exactly: number) != nil else {
            throw CommandError("ERR value is out of range, value must between \(Int32.min) and \(Int32.max)")
        }
        guard (0...15).contains(number) else { throw CommandError("ERR DB index is out of range") }
    }

    /// Returns the database that a word of the call names. The word has the form of SELECT's argument.
    private static func database(_ call: Call, _ index: Int) throws(CommandError) -> Database {
        try checkDatabase(call.words, index)
        return try call.database(call.text(index))
    }

    /// Throws if a word of a call does not name a database.
    private static func checkDatabase(_ words: CallWords, _ index: Int) throws(CommandError) {
        if let number = parseInteger(words.bytes(index)) {
            try checkDatabaseNumber(number)
        } else if !DatabaseName.isValid(words.text(index)) {
            throw .notAnInteger
        }
    }

    // MARK: RANDOMKEY

    @Sendable private static func randomkey(_ call: inout Call) throws(CommandError) -> Outcome {
        let view = try View(call)
        return .later { (reply) throws(CommandError) in
            reply.word(try view.run { () throws(LarderError) in try randomKey(try view.snapshot()) })
        }
    }

    /// Chooses a random key in a few steps, whatever the number of keys. Walks down the tree of common prefixes, and
    /// takes a random branch where keys differ. If the keys are evenly distributed, for example numbers of equal
    /// length, all keys have nearly equal probabilities.
    private static func randomKey(_ snapshot: Snapshot) throws(LarderError) -> [UInt8]? {
        var prefix: [UInt8] = []
        while true {
            guard let first = try key(snapshot, EnumerationOptions(prefix: prefix)),
                let last = try key(snapshot, EnumerationOptions(prefix: prefix, backward: true))
            else { return nil }
            if first == last { return first }
            // All keys that begin with `prefix` are between `first` and `last`, and share the common prefix of `first`
            // and `last`.
            let common = zip(first, last).prefix { $0 == $1 }.count
            // If the smallest key is equal to this common prefix, the key itself is one of the branches.
            let least = common < first.count ? Int(first[common]) : -1
            let way = Int.random(in: least...Int(last[common]))
            if way < 0 { return first }
            let start = Array(first[..<common]) + [UInt8(way)]
            let next = try key(snapshot, EnumerationOptions(prefix: Array(first[..<common]), start: start))
            // The keys of this branch may have expired meanwhile. If so, use the key that was found before.
            guard let next, next.count > common else { return first }
            prefix = Array(next[...common])
        }
    }

    private static func key(_ snapshot: Snapshot, _ options: EnumerationOptions) throws(LarderError) -> [UInt8]? {
        guard let cursor = try snapshot.cursor(options), try cursor.next() else { return nil }
        return Array(try cursor.key().bytes)
    }
}
