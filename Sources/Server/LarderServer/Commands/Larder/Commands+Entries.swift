import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// ENTRIES and PLACE copy entries from one larder to another, with all their metadata.
extension CommandTable {
    static let entryCommands: Handlers = [.entries: entries]
    static let entryPlanners: Planners = [.place: place]

    /// Returns how far the engine's clock is ahead of the wall clock, in milliseconds; 0 if the difference is less than
    /// a second. On a busy machine, small differences are errors of measurement, and must not change the times of
    /// exported entries.
    static func timeAhead(_ engine: Engine) -> Int64 { exported(engine.clockOffsetMilliseconds) }
    private static func timeAhead(_ words: CallWords) -> Int64 { exported(words.timeAhead) }
    private static func exported(_ ahead: Int64) -> Int64 { ahead < 1000 ? 0 : ahead }

    // MARK: ENTRIES

    @Sendable private static func entries(_ call: inout Call) throws(CommandError) -> Outcome {
        let step = try EntryStep(call)
        let view = try View(call)
        let server = call.server
        return .later { (reply) throws(CommandError) in
            let now = server.engine.now()
            let (found, last) = try view.run { () throws(LarderError) in try step.run(view, now: now) }
            let ahead = timeAhead(server.engine)
            reply.array(count: 2)
            reply.word(last)
            reply.array(count: found.count)
            for entry in found {
                reply.array(count: fieldCount)
                writeFields(entry, ahead, hasValue: step.hasValues, to: &reply)
            }
        }
    }

    /// The number of elements in the reply that describe one entry.
    static let fieldCount = 8

    /// Writes an entry as ``fieldCount`` elements, which contain all that PLACE needs to store the same entry.
    static func writeFields(_ entry: FeedEntry, _ ahead: Int64, hasValue: Bool, to reply: inout ReplyBuffer) {
        reply.bulk(entry.key)
        if hasValue { entry.record.withPayload { reply.bulk($0) } } else { reply.null() }
        reply.integer(max(0, entry.header.storedAt - ahead))
        reply.bulk(entry.header.rule.name)
        reply.integer(entry.deadline.map { max(0, $0 - ahead) } ?? -1)
        reply.integer(entry.header.grace ?? -1)
        reply.bulk(entry.header.codec.description)
        reply.words(entry.record.tags?.all ?? [])
    }

    /// Parses a number that must be at least 1. A number greater than `most` is reduced to `most`.
    static func number(_ call: Call, _ index: Int, _ most: Int) throws(CommandError) -> Int {
        let value = try call.integer(index)
        guard value >= 1 else { throw CommandError("ERR \(call.text(index - 1).uppercased()) must be 1 or more") }
        return Int(min(value, Int64(most)))
    }

    private struct EntryStep: Sendable {
        private var after: [UInt8]?
        private var limits = FeedOptions()
        private(set) var hasValues = true

        init(_ call: Call) throws(CommandError) {
            var options = OptionReader(call, from: 1)
            while let name = options.next() {
                switch name {
                case "novalues" where hasValues: hasValues = false
                case "after": after = call.array(try options.value())
                case "prefix": limits.prefix = call.array(try options.value())
                case "count": limits.count = try number(call, try options.value(), Limits.entriesCountMax)
                case "bytes": limits.bytes = try number(call, try options.value(), Limits.scanBytesMax)
                default: throw .syntax
                }
            }
        }

        /// Reads the next entries.
        /// - Returns: the entries, and the last key that was read; nil if all keys were read.
        func run(_ view: View, now: Int64) throws(LarderError) -> (found: [FeedEntry], last: [UInt8]?) {
            var found: [FeedEntry] = []
            let cursor = try view.cursor(limits.enumeration(after: after))
            let last = try cursor?.list(limits, now: now) { found.append($0) }
            return (found, last)
        }
    }

    // MARK: PLACE

    @Sendable private static func place(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let options = try PlaceOptions(words)
        let value = words.bytes(2)
        let header = RecordHeader(
            storedAt: options.storedAt, rule: options.rule, codec: options.codec, grace: options.grace)
        let staged = options.tags == nil ? StagedValue(value, grace: header.grace) { _ in header.rule } : nil
        let key = try words.key(1)
        if let version = options.version {
            return .change(
                ChangePlan(keys: [key], staged: staged, version: version) { update, context in
                    .text(
                        update.follow(
                            0, header, payload: value, long: context.long, tags: options.tags, version,
                            over: options.over
                        ).rawValue)
                })
        }
        return .change(
            ChangePlan(keys: [key], loading: .headers, staged: staged) { update, context in
                let isNewer = update.storedAt(0).map { $0 > header.storedAt } ?? false
                if isNewer || options.isForAbsent && update.isFresh(0) { return .text("kept") }
                let isStored = update.place(0, header, payload: value, long: context.long, tags: options.tags)
                return .text(isStored ? "stored" : "expired")
            })
    }

    private struct PlaceOptions {
        private(set) var isForAbsent = false
        private(set) var storedAt: Int64 = 0
        private(set) var rule = DeadlineRule.governed
        private(set) var grace: Int64?
        private(set) var codec = Codec.raw
        private(set) var tags: Tags?
        /// The version of the change, if the call replicates a change of another larder; otherwise nil.
        private(set) var version: ChangeVersion?
        private(set) var over: Int64?

        init(_ words: CallWords) throws(CommandError) {
            // Each option may be given only once. NEVER and PXAT count as one option, because both set the deadline.
            var seen: Set<String> = []
            var options = OptionReader(words, from: 3)
            while let name = options.next() {
                guard seen.insert(name == "never" ? "pxat" : name).inserted else { throw .syntax }
                switch name {
                case "nx": isForAbsent = true
                case "never": rule = .ownNever
                case "storedat": storedAt = try Self.past(words, try options.value())
                case "pxat":
                    let deadline = try words.integer(try options.value())
                    guard deadline > 0 else { throw CommandError("ERR invalid expire time in '\(words.name)' command") }
                    let (sum, overflow) = deadline.addingReportingOverflow(timeAhead(words))
                    rule = .own(overflow ? deadline : sum)
                case "grace": grace = try words.grace(try options.value())
                case "codec": codec = try Self.codec(words.text(try options.value()))
                case "version": version = try words.version(try options.value())
                case "over": over = try words.integer(try options.value())
                case "tags":
                    let indices = try words.tagIndices(try options.value())
                    tags = try words.tags(indices)
                    for _ in indices { _ = try options.value() }
                default: throw .syntax
                }
            }
            guard seen.contains("storedat") else {
                throw CommandError("ERR PLACE needs STOREDAT and milliseconds since 1970")
            }
            if version == nil ? over != nil : isForAbsent { throw .syntax }
        }

        /// Parses an instant, and converts it to the engine's clock. An instant in the future becomes the current time.
        private static func past(_ words: CallWords, _ index: Int) throws(CommandError) -> Int64 {
            let instant = try words.integer(index)
            guard instant >= 0 else { throw CommandError("ERR STOREDAT takes milliseconds since 1970, 0 or more") }
            let ahead = timeAhead(words)
            return min(instant, words.now - ahead) + ahead
        }

        /// Parses the name of a codec; for a codec without a name, the number that ENTRIES returns.
        private static func codec(_ text: String) throws(CommandError) -> Codec {
            guard let codec = Codec(name: text) ?? UInt8(text).map({ Codec(rawValue: $0) }) else {
                throw CommandError("ERR the codec must be raw, json, plist or custom")
            }
            return codec
        }
    }
}
