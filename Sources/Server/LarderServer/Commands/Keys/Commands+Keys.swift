import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let keyPlanners: Planners = [
        .del: KeyCommands.remove,
        .unlink: KeyCommands.remove,
        .exists: KeyCommands.exists,
        .touch: KeyCommands.exists,
        .type: { _ in .facts(1, .counted) { facts, _, replies in replies.simple(facts == nil ? "none" : "string") } },
    ]

    static let keyCommands: Handlers = [
        .keys: KeyCommands.keys,
        .scan: KeyCommands.scan,
        .dbsize: KeyCommands.dbsize,
    ]
}

enum KeyCommands {
    @Sendable static func remove(_ words: CallWords) throws(CommandError) -> EntryPlan {
        if words.count == 2 { return .apply(.remove) }
        let keys = try words.keys(from: 1)
        return .change(
            ChangePlan(keys: keys, loading: .headers) { update, _ in
                .integer(keys.indices.count { EntryOperation.remove(update, $0) })
            })
    }

    @Sendable static func exists(_ words: CallWords) throws(CommandError) -> EntryPlan {
        words.count == 2 ? .apply(.exists) : .count(try words.keys(from: 1))
    }

    @Sendable static func dbsize(_ call: inout Call) throws(CommandError) -> Outcome {
        let view = try View(call)
        return .deferred { (reply) throws(CommandError) in
            let count = try view.run { () throws(LarderError) in try view.count() }
            reply.integer(count)
            return nil
        }
    }

    @Sendable static func keys(_ call: inout Call) throws(CommandError) -> Outcome {
        let view = try View(call)
        let pattern = GlobPattern(call.array(1))
        let most = call.server.limits.replyBytesMax
        return .deferred { (reply) throws(CommandError) in
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
            reply.array(count: keys.count)
            for key in keys { reply.bulk(key) }
            return nil
        }
    }

    // MARK: SCAN

    @Sendable static func scan(_ call: inout Call) throws(CommandError) -> Outcome {
        guard let cursor = parseCursor(call.bytes(1)) else { throw invalidCursor }
        let options = try ScanOptions(call)
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
        return .deferred { [start] (reply) throws(CommandError) in
            var step = ScanStep()
            try view.run { () throws(LarderError) in
                step = ScanStep()
                try step.run(view, options, start)
            }
            let next = step.last.map { cursors.add($0, database: view.database.name) } ?? 0
            reply.array(count: 2)
            reply.bulk(String(next))
            reply.array(count: step.keys.count)
            for key in step.keys { reply.bulk(key) }
            return nil
        }
    }

    static let invalidCursor = CommandError("ERR invalid cursor")

    static func parseCursor(_ bytes: UnsafeRawBufferPointer) -> UInt64? {
        guard bytes.count > 0, bytes.count <= 20, bytes.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
        return UInt64(String(decoding: bytes, as: UTF8.self))
    }

    private struct ScanOptions: Sendable {
        var pattern = GlobPattern(Array("*".utf8))
        var count = 10
        var isForStrings = true

        init(_ call: Call) throws(CommandError) {
            var index = 2
            while index < call.count {
                guard index + 1 < call.count else { throw .syntax }
                if call.isWord(index, "MATCH") {
                    pattern = GlobPattern(call.array(index + 1))
                } else if call.isWord(index, "COUNT") {
                    let value = try call.integer(index + 1)
                    guard value >= 1 else { throw .syntax }
                    count = Int(min(value, Int64(Limits.scanCountMax)))
                } else if call.isWord(index, "TYPE") {
                    isForStrings = call.isWord(index + 1, "STRING")
                } else {
                    throw .syntax
                }
                index += 2
            }
        }
    }

    private struct ScanStep {
        var keys: [[UInt8]] = []
        /// The last key that was read; nil if the scan is complete.
        var last: [UInt8]?

        mutating func run(_ view: View, _ options: ScanOptions, _ start: [UInt8]?) throws(LarderError) {
            var enumeration = EnumerationOptions(prefix: options.pattern.fixedPrefix)
            // No key before the prefix can match, so begin at the prefix or after it.
            if let start, !start.lexicographicallyPrecedes(enumeration.prefix) { enumeration.start = start }
            guard let cursor = try view.cursor(enumeration) else { return }
            var seen = 0
            var bytes = 0
            while try cursor.next() {
                let key = Array(try cursor.key().bytes)
                if options.isForStrings, options.pattern.matches(key) { keys.append(key) }
                seen += 1
                bytes += key.count
                if seen == options.count || bytes > Limits.scanBytesMax {
                    last = key
                    return
                }
            }
        }
    }
}

/// The state that a deferred command reads: the connection's snapshot if one is open, otherwise the current entries.
struct View: Sendable {
    let database: Database
    private let open: OpenSnapshot?

    init(_ call: Call) throws(CommandError) { self.init(call.database, try call.session.snapshot()) }

    /// - Parameter open: the snapshot to read; nil to read the current entries.
    init(_ database: Database, _ open: OpenSnapshot? = nil) {
        self.database = database
        self.open = open
    }

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
