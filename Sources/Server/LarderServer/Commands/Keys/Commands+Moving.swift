import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// Commands that move or copy an entry to another key or database; also TOUCH, SWAPDB and RANDOMKEY.
extension CommandTable {
    static let movingCommands: Handlers = [
        .touch: KeyCommands.exists,
        .rename: { call throws(CommandError) in try MovingCommands.rename(&call, onlyIfAbsent: false) },
        .renamenx: { call throws(CommandError) in try MovingCommands.rename(&call, onlyIfAbsent: true) },
        .copy: MovingCommands.copy,
        .move: MovingCommands.move,
        .swapdb: MovingCommands.swapdb,
        .randomkey: MovingCommands.randomkey,
    ]
}

enum MovingCommands {
    static let sameObject = CommandError("ERR source and destination objects are the same")

    static func rename(_ call: inout Call, onlyIfAbsent: Bool) throws(CommandError) -> Outcome {
        let keys = try call.keys(from: 1)
        let isSame = keys[0] == keys[1]
        let renamed = try call.update(keys, loading: true) { update -> Bool? in
            guard let record = update.current(0) else { return nil }
            if isSame { return !onlyIfAbsent }
            if onlyIfAbsent, update.isFresh(1) { return false }
            update.remove(0)
            update.place(1, record)
            return true
        }
        guard let renamed else { throw CommandError("ERR no such key") }
        if onlyIfAbsent {
            call.session.replies.integer(renamed ? 1 : 0)
        } else {
            call.session.replies.simple("OK")
        }
        return .done
    }

    @Sendable static func copy(_ call: inout Call) throws(CommandError) -> Outcome {
        var target = call.database
        var replaces = false
        var index = 3
        while index < call.count {
            if call.isWord(index, "REPLACE") {
                replaces = true
            } else if call.isWord(index, "DB"), index + 1 < call.count {
                index += 1
                target = try database(call, index)
            } else {
                throw .syntax
            }
            index += 1
        }
        let (source, destination) = (try call.key(1), try call.key(2))
        let isCopied: Bool
        if target === call.database {
            if source == destination { throw sameObject }
            isCopied = try call.update([source, destination], loading: true) { [replaces] update in
                guard let record = update.readRecord(0), replaces || !update.isFresh(1) else { return false }
                update.place(1, record)
                return true
            }
        } else {
            isCopied = try transfer(&call, source, to: target, destination, removes: false, replaces: replaces)
        }
        return call.reply(isCopied ? 1 : 0)
    }

    /// Copies or moves an entry to another database. As in Redis, only a copy counts as a read.
    private static func transfer(
        _ call: inout Call, _ key: Key, to target: Database, _ targetKey: Key, removes: Bool, replaces: Bool
    ) throws(CommandError) -> Bool {
        try call.checkHasNoOrigin(target)
        // In a transaction, first check whether there is an entry. Otherwise the files of the other database would be
        // created even if there is nothing to move or copy.
        if call.isInTransaction, try (removes ? call.uncountedFacts(1) : call.facts(1)) == nil { return false }
        let counts = !removes && !call.isInTransaction
        return try call.update([key], and: target, [targetKey]) { update, other in
            guard let record = counts ? update.readRecord(0) : update.current(0), replaces || !other.isFresh(0) else {
                return false
            }
            if removes { update.remove(0) }
            other.place(0, record)
            return true
        }
    }

    @Sendable static func move(_ call: inout Call) throws(CommandError) -> Outcome {
        let target = try database(call, 2)
        guard target !== call.database else { throw sameObject }
        let key = try call.key(1)
        let isMoved = try transfer(&call, key, to: target, key, removes: true, replaces: false)
        return call.reply(isMoved ? 1 : 0)
    }

    @Sendable static func swapdb(_ call: inout Call) throws(CommandError) -> Outcome {
        let names = [call.text(1), call.text(2)]
        for (index, which) in [(1, "first"), (2, "second")] {
            let isNumber = parseInteger(call.bytes(index)).map { Int32(exactly: $0) != nil } ?? false
            guard isNumber || DatabaseName.isValid(names[index - 1]) else {
                throw CommandError("ERR invalid \(which) DB index")
            }
        }
        if let name = names.first(where: DatabaseName.isKept) {
            throw CommandError("ERR '\(name)' is an outbox and cannot be swapped")
        }
        let databases = [try database(call, 1), try database(call, 2)]
        for database in databases { try call.checkHasNoOrigin(database) }
        let engine = call.server.engine
        return .deferred { (reply) throws(CommandError) in
            try CommandError.wrap(
                engine.exchange(
                    databases[0], databases[1], entriesMax: CommandMetadata.exchangedEntriesMax,
                    bytesMax: CommandMetadata.exchangedBytesMax))
            reply.simple("OK")
            return nil
        }
    }

    static let badNumber = CommandError(
        "ERR value is out of range, value must between \(Int32.min) and \(Int32.max)")

    /// Returns the database that SELECT would select for a word of the call.
    static func database(_ call: Call, _ index: Int) throws(CommandError) -> Database {
        let name = call.text(index)
        if let number = parseInteger(call.bytes(index)) {
            guard Int32(exactly: number) != nil else {
                throw badNumber
            }
            guard (0...15).contains(number) else { throw CommandError("ERR DB index is out of range") }
        } else if !DatabaseName.isValid(name) {
            throw .notAnInteger
        }
        return try call.database(name)
    }

    // MARK: RANDOMKEY

    @Sendable static func randomkey(_ call: inout Call) throws(CommandError) -> Outcome {
        let view = try View(call)
        return .deferred { (reply) throws(CommandError) in
            let key = try view.run { () throws(LarderError) in try RandomKey.choose(try view.snapshot()) }
            if let key { reply.bulk(key) } else { reply.null() }
            return nil
        }
    }
}

/// Chooses a random key in a few steps, whatever the number of keys is. It walks down the tree of common prefixes, and
/// takes a random branch where keys differ. If the keys are evenly distributed, such as numbers of equal length, all
/// have nearly the same probability.
enum RandomKey {
    static func choose(_ snapshot: Snapshot) throws(LarderError) -> [UInt8]? {
        var prefix: [UInt8] = []
        while true {
            guard let first = try key(snapshot, EnumerationOptions(prefix: prefix)),
                let last = try key(snapshot, EnumerationOptions(prefix: prefix, backward: true))
            else { return nil }
            if first == last { return first }
            // All keys that begin with `prefix` are between `first` and `last`, so they share the common prefix of
            // these two.
            let common = zip(first, last).prefix { $0 == $1 }.count
            // If the smallest key is this common prefix itself, it is one of the possible branches.
            let least = common < first.count ? Int(first[common]) : -1
            let way = Int.random(in: least...Int(last[common]))
            if way < 0 { return first }
            let start = Array(first[..<common]) + [UInt8(way)]
            let next = try key(snapshot, EnumerationOptions(prefix: Array(first[..<common]), start: start))
            // The keys of this branch may have expired meanwhile: use a key that was found before.
            guard let next, next.count > common else { return first }
            prefix = Array(next[...common])
        }
    }

    private static func key(_ snapshot: Snapshot, _ options: EnumerationOptions) throws(LarderError) -> [UInt8]? {
        guard let cursor = try snapshot.cursor(options), try cursor.next() else { return nil }
        return Array(try cursor.key().bytes)
    }
}
