import LarderCommandCatalog
import LarderEngine
import LarderRESP
import LarderVocabulary
import Synchronization

/// Replication between larders. CHANGES returns the changes of a database, so that another larder can apply them.
/// UNPLACE applies a removal that was made in another larder. Of several changes to an entry, the latest applies.
extension CommandTable {
    static let changesCommands: Handlers = [.changes: changes]
    static let changesPlanners: Planners = [.unplace: unplace]

    // MARK: CHANGES

    @Sendable private static func changes(_ call: inout Call) throws(CommandError) -> Outcome {
        let session = call.session
        let words = try ChangesWords(call)
        try call.checkIsNoCompanion()
        guard try session.snapshot() == nil else {
            throw CommandError("ERR a snapshot is open, and CHANGES reads current entries: SNAPSHOT CLOSE first")
        }
        session.record.isFollower.store(true, ordering: .relaxed)
        let database = call.database
        let until = session.waits.feed.mustWait(
            behind: words.position, words.options.prefix, milliseconds: words.block, database,
            clock: session.clock.monotonic(), wakeUp: session.isStopping ? nil : session.waits.wakeUp,
            elsewhere: session.waits.runElsewhere ?? { $0() })
        if let until { return .waits(until: until) }
        let position = session.waits.feed.end ?? words.position
        let server = call.server
        return .later { (reply) throws(CommandError) in
            let step = try CommandError.wrap(database.feed.step(since: position, words.options))
            write(step, timeAhead(server.engine), to: &reply)
        }
    }

    private static func write(_ step: FeedStep, _ ahead: Int64, to reply: inout ReplyBuffer) {
        reply.map(count: 6)
        reply.field("position", step.position.description)
        reply.field("state", step.state.rawValue)
        reply.bulk("reason")
        if let reason = step.reason { reply.bulk(reason.rawValue) } else { reply.null() }
        reply.bulk("range")
        if let range = step.range {
            reply.array(count: 2)
            reply.word(range.after)
            reply.word(range.through)
        } else {
            reply.null()
        }
        reply.field("time", max(0, step.time - ahead))
        reply.bulk("changes")
        reply.array(count: step.changes.count)
        for item in step.changes { write(item, ahead, to: &reply) }
    }

    private static func write(_ item: FeedItem, _ ahead: Int64, to reply: inout ReplyBuffer) {
        func begin(_ kind: String, _ count: Int) {
            reply.array(count: 3 + count)
            reply.bulk(kind)
            reply.integer(Int64(clamping: item.sequence))
            reply.bulk(item.version.description)
        }
        switch item.change {
        case .stored(let entry):
            begin("stored", fieldCount)
            writeFields(entry, ahead, hasValue: true, to: &reply)
        case .removed(let key):
            begin("removed", 1)
            reply.bulk(key)
        case .purged: begin("purged", 0)
        case .purgedPrefix(let prefix):
            begin("purged-prefix", 1)
            reply.bulk(prefix)
        case .purgedTags(let tags):
            begin("purged-tags", 1)
            reply.words(tags)
        }
    }

    // MARK: UNPLACE

    @Sendable private static func unplace(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let key = try words.key(1)
        let version = try words.version(2)
        var tags: Set<[UInt8]>?
        if words.count > 3 {
            guard words.count > 4, words.isWord(3, "TAG") else { throw .syntax }
            tags = Set((4..<words.count).map { words.array($0) })
        }
        return .change(
            ChangePlan(keys: [key], loading: tags == nil ? .headers : .records, version: version) {
                [tags] update, _ in .text(update.follow(removal: version, 0, tags: tags).rawValue)
            })
    }
}

extension Call {
    /// Throws if the database is an outbox, because outboxes are not replicated.
    func checkIsNoCompanion() throws(CommandError) {
        guard CompanionName.isOne(database.name) else { return }
        throw CommandError("ERR \(CompanionName.refusal(database.name))")
    }
}

struct ChangesWords: Sendable {
    private(set) var position = FeedPosition.beginning
    private(set) var options = FeedOptions()
    /// How long to wait for a change, in milliseconds; 0 for no limit, nil to return immediately.
    private(set) var block: Int64?

    init(_ call: Call) throws(CommandError) {
        guard call.isWord(1, "SINCE") else { throw .syntax }
        guard call.bytes(2).count <= FeedPosition.textBytesMax, let position = FeedPosition(call.text(2)) else {
            throw CommandError("ERR invalid position: must be 0, $, a sequence number, or a position of CHANGES")
        }
        self.position = position
        var seen: Set<String> = []
        var words = OptionReader(call, from: 3)
        while let name = words.next() {
            let index = try words.value()
            guard seen.insert(name).inserted else { throw .syntax }
            switch name {
            case "count": options.count = try CommandTable.number(call, index, Limits.entriesCountMax)
            case "bytes": options.bytes = try CommandTable.number(call, index, Limits.scanBytesMax)
            case "prefix":
                options.prefix = call.array(index)
                guard options.prefix.count <= Key.bytesMax else { throw .syntax }
            case "block": block = try FetchWords.milliseconds(call.bytes(index), "BLOCK", from: 0)
            default: throw .syntax
            }
        }
    }
}
