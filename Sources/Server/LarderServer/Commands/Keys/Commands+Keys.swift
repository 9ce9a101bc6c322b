import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let keyPlanners: Planners = [
        .del: remove,
        .unlink: remove,
        .exists: exists,
        .touch: exists,
        .type: { _ in .facts(1, .counted) { facts, _, replies in replies.simple(facts == nil ? "none" : "string") } },
        .expire: { words throws(CommandError) in .apply(try .expire(words, .seconds)) },
        .pexpire: { words throws(CommandError) in .apply(try .expire(words, .milliseconds)) },
        .expireat: { words throws(CommandError) in .apply(try .expire(words, .unixSeconds)) },
        .pexpireat: { words throws(CommandError) in .apply(try .expire(words, .unixMilliseconds)) },
        .ttl: { _ in .apply(.remaining(inSeconds: true)) },
        .pttl: { _ in .apply(.remaining(inSeconds: false)) },
        .expiretime: { words in instant(words, inSeconds: true) },
        .pexpiretime: { words in instant(words, inSeconds: false) },
        .persist: { words throws(CommandError) in try .change(words) { update, _ in .flag(update.persist(0)) } },
    ]

    static let keyCommands: Handlers = [
        .keys: keys,
        .scan: scan,
        .dbsize: { call throws(CommandError) in
            let view = try View(call)
            return .later { (reply) throws(CommandError) in
                reply.integer(try view.run { () throws(LarderError) in try view.count() })
            }
        },
    ]

    @Sendable private static func remove(_ words: CallWords) throws(CommandError) -> EntryPlan {
        if words.count == 2 { return .apply(.remove) }
        let keys = try words.keys(from: 1)
        return .change(
            ChangePlan(keys: keys, loading: .headers) { update, _ in
                .integer(keys.indices.count { EntryOperation.remove(update, $0) })
            })
    }

    @Sendable private static func exists(_ words: CallWords) throws(CommandError) -> EntryPlan {
        words.count == 2 ? .apply(.exists) : .count(try words.keys(from: 1))
    }

    @Sendable private static func keys(_ call: inout Call) throws(CommandError) -> Outcome {
        let view = try View(call)
        let pattern = GlobPattern(call.array(1))
        let most = call.server.limits.replyBytesMax
        return .later { (reply) throws(CommandError) in
            var keys: [[UInt8]] = []
            var room = most
            try view.run { () throws(LarderError) in
                keys = []
                room = most
                guard let cursor = try view.cursor(EnumerationOptions(prefix: pattern.fixedPrefix)) else { return }
                while try cursor.next() {
                    let key = Array(try cursor.key().bytes)
                    guard pattern.matches(key) else { continue }
                    room -= key.count + Limits.listedKeyOverheadBytes
                    if room < 0 { return }
                    keys.append(key)
                }
            }
            if room < 0 {
                throw CommandError(
                    "ERR the keys exceed \(most) bytes, the limit for one reply (--max-reply): use SCAN")
            }
            reply.words(keys)
        }
    }

    /// Replies with the time at which an entry expires, as seconds or milliseconds since 1970 by the wall clock.
    private static func instant(_ words: CallWords, inSeconds: Bool) -> EntryPlan {
        let ahead = words.timeAhead
        return .facts(1, .counted) { facts, rules, replies in
            guard let facts else { return replies.integer(EntryOperation.noEntry) }
            guard let deadline = rules.deadline(facts.header) else { return replies.integer(EntryOperation.noDeadline) }
            let instant = max(0, max(deadline, words.now) - ahead)
            // Round to the nearest second. Adding 500 ms first could overflow.
            replies.integer(inSeconds ? instant / 1000 + (instant % 1000 >= 500 ? 1 : 0) : instant)
        }
    }

    // MARK: SCAN

    @Sendable private static func scan(_ call: inout Call) throws(CommandError) -> Outcome {
        guard let cursor = parseCursor(call.bytes(1)) else { throw invalidCursor }
        let options = try Scan(call)
        let view = try View(call)
        let cursors = call.server.scanCursors
        var start: [UInt8]?
        if cursor != 0 {
            guard let last = cursors.find(cursor, database: view.database.name) else {
                throw CommandError("ERR unknown cursor \(cursor): it has expired or is invalid; restart with cursor 0")
            }
            // Begin at the smallest key that is greater than the last key.
            start = last + [0]
        }
        return .later { [start] (reply) throws(CommandError) in
            let step = try view.run { () throws(LarderError) in try options.step(view, start) }
            let next = step.last.map { cursors.add($0, database: view.database.name) } ?? 0
            reply.array(count: 2)
            reply.bulk(String(next))
            reply.words(step.keys)
        }
    }

    static let invalidCursor = CommandError("ERR invalid cursor")

    static func parseCursor(_ bytes: UnsafeRawBufferPointer) -> UInt64? {
        guard bytes.count > 0, bytes.count <= 20, bytes.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
        return UInt64(String(decoding: bytes, as: UTF8.self))
    }

    private struct Scan: Sendable {
        private var pattern = GlobPattern(Array("*".utf8))
        private var count = 10
        private var isForStrings = true

        init(_ call: Call) throws(CommandError) {
            var options = OptionReader(call, from: 2)
            while let name = options.next() {
                let index = try options.value()
                switch name {
                case "match": pattern = GlobPattern(call.array(index))
                case "count":
                    let value = try call.integer(index)
                    guard value >= 1 else { throw .syntax }
                    count = Int(min(value, Int64(Limits.scanCountMax)))
                case "type": isForStrings = call.isWord(index, "STRING")
                default: throw .syntax
                }
            }
        }

        /// Reads the next keys, from the key `start`.
        /// - Returns: the keys that match, and the last key that was read; nil if the scan is complete.
        func step(_ view: View, _ start: [UInt8]?) throws(LarderError) -> (keys: [[UInt8]], last: [UInt8]?) {
            var enumeration = EnumerationOptions(prefix: pattern.fixedPrefix)
            // No key before the prefix can match, so begin at the prefix or after it.
            if let start, !start.lexicographicallyPrecedes(enumeration.prefix) { enumeration.start = start }
            var keys: [[UInt8]] = []
            guard let cursor = try view.cursor(enumeration) else { return (keys, nil) }
            var seen = 0
            var bytes = 0
            while try cursor.next() {
                let key = Array(try cursor.key().bytes)
                if isForStrings, pattern.matches(key) { keys.append(key) }
                seen += 1
                bytes += key.count
                if seen == count || bytes > Limits.scanBytesMax { return (keys, key) }
            }
            return (keys, nil)
        }
    }
}

/// The state that a deferred command reads: the connection's snapshot if one is open, otherwise the current entries.
struct View: Sendable {
    let database: Database
    private let open: OpenSnapshot?

    init(_ call: Call) throws(CommandError) { self.init(call.database, try call.session.snapshot()) }

    /// - Parameter open: the snapshot to read; nil to read the current entries.
    init(_ database: Database, _ open: OpenSnapshot? = nil) { (self.database, self.open) = (database, open) }

    /// The connection's snapshot; nil if none is open.
    var openSnapshot: Snapshot? { open?.snapshot }

    func cursor(_ options: EnumerationOptions) throws(LarderError) -> EntryCursor? {
        if let open { return try open.snapshot.cursor(options) }
        return try database.cursor(options)
    }

    /// Returns a snapshot, so that several reads see the same state.
    func snapshot() throws(LarderError) -> Snapshot {
        if let open { return open.snapshot }
        return try database.snapshot()
    }

    func count() throws(LarderError) -> Int {
        if let open { return try open.snapshot.count(includingExpired: false) }
        return try database.count(includingExpired: false)
    }

    /// Runs `body`, and converts errors of the engine to errors for the client. If the database is purged or reopened
    /// during `body`, runs `body` again with the new state. But if the view is a snapshot of the connection, throws an
    /// error instead.
    func run<Result>(_ body: () throws(LarderError) -> Result) throws(CommandError) -> Result {
        while true {
            do throws(LarderError) {
                return try body()
            } catch {
                if open == nil, error.code == .purged || error.code == .invalidated { continue }
                throw CommandError(error)
            }
        }
    }
}
