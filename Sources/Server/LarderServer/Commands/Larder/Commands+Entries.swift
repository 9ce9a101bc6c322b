import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// ENTRIES and PLACE copy entries from one larder to another, with all their metadata.
extension CommandTable {
    static let entryCommands: Handlers = [.entries: EntryCommands.entries]
    static let entryPlanners: Planners = [.place: EntryCommands.place]
}

enum EntryCommands {
    /// Returns how far the engine's clock is ahead of the wall clock, in milliseconds; 0 if the difference is less than
    /// a second. On a busy machine, small differences are errors of measurement, and must not change the times of
    /// exported entries.
    static func timeAhead(_ engine: Engine) -> Int64 { exported(engine.clockOffsetMilliseconds) }
    private static func timeAhead(_ words: CallWords) -> Int64 { exported(words.timeAhead) }
    private static func exported(_ ahead: Int64) -> Int64 { ahead < 1000 ? 0 : ahead }

    // MARK: ENTRIES

    @Sendable static func entries(_ call: inout Call) throws(CommandError) -> Outcome {
        let options = try StepOptions(call)
        let view = try View(call)
        let server = call.server
        return .deferred { (reply) throws(CommandError) in
            let now = server.engine.now()
            var step = Step()
            try view.run { () throws(LarderError) in
                step = Step()
                try step.run(view, options, now: now)
            }
            let ahead = timeAhead(server.engine)
            reply.array(count: 2)
            if let last = step.last { reply.bulk(last) } else { reply.null() }
            reply.array(count: step.found.count)
            for entry in step.found {
                reply.array(count: fieldCount)
                writeFields(
                    entry.key, entry.record, entry.header, entry.deadline, ahead, hasValue: options.hasValues,
                    to: &reply)
            }
            return nil
        }
    }

    /// The number of elements in the reply that describe one entry.
    static let fieldCount = 8

    /// Writes an entry as ``fieldCount`` elements, which contain all that PLACE needs to store the same entry.
    static func writeFields(
        _ key: [UInt8], _ record: Record, _ header: RecordHeader, _ deadline: Int64?, _ ahead: Int64, hasValue: Bool,
        to reply: inout ReplyBuffer
    ) {
        reply.bulk(key)
        if hasValue { record.withPayload { reply.bulk($0) } } else { reply.null() }
        reply.integer(max(0, header.storedAt - ahead))
        reply.bulk(header.rule.name)
        reply.integer(deadline.map { max(0, $0 - ahead) } ?? -1)
        reply.integer(header.grace ?? -1)
        reply.bulk(header.codec.description)
        let tags = record.tags?.all ?? []
        reply.array(count: tags.count)
        for tag in tags { reply.bulk(tag) }
    }

    private struct StepOptions: Sendable {
        var after: [UInt8]?
        var prefix: [UInt8] = []
        var count = 100
        var bytes = 1_048_576
        var hasValues = true

        init(_ call: Call) throws(CommandError) {
            var index = 1
            while index < call.count {
                if call.isWord(index, "NOVALUES"), hasValues {
                    hasValues = false
                    index += 1
                    continue
                }
                guard index + 1 < call.count else { throw .syntax }
                if call.isWord(index, "AFTER") {
                    after = call.array(index + 1)
                } else if call.isWord(index, "PREFIX") {
                    prefix = call.array(index + 1)
                } else if call.isWord(index, "COUNT") {
                    count = try EntryCommands.number(call, index + 1, Limits.entriesCountMax)
                } else if call.isWord(index, "BYTES") {
                    bytes = try EntryCommands.number(call, index + 1, Limits.scanBytesMax)
                } else {
                    throw .syntax
                }
                index += 2
            }
        }
    }

    /// Parses a number that must be at least 1. A number greater than `most` is reduced to `most`.
    static func number(_ call: Call, _ index: Int, _ most: Int) throws(CommandError) -> Int {
        let value = try call.integer(index)
        guard value >= 1 else {
            throw CommandError("ERR \(call.text(index - 1).uppercased()) must be 1 or more")
        }
        return Int(min(value, Int64(most)))
    }

    private struct Step {
        struct Found {
            let key: [UInt8]
            let record: Record
            /// The header as another larder must store it.
            let header: RecordHeader
            let deadline: Int64?
        }

        var found: [Found] = []
        /// The last key that was read; nil if all keys were read.
        var last: [UInt8]?

        /// The maximum number of expired entries that one call of ENTRIES skips before it returns.
        private static let goneMax = 100_000

        mutating func run(_ view: View, _ options: StepOptions, now: Int64) throws(LarderError) {
            var enumeration = EnumerationOptions(prefix: options.prefix, includeExpired: true)
            // Begin at the smallest key that is greater than `after`, but not before the prefix.
            if let start = options.after.map({ $0 + [0] }), !start.lexicographicallyPrecedes(options.prefix) {
                enumeration.start = start
            }
            guard let cursor = try view.cursor(enumeration) else { return }
            let rules = view.database.rules
            var bytes = 0
            var gone = 0
            while try cursor.next() {
                let header = try cursor.header()
                if rules.freshness(header, now: now) == .gone {
                    gone += 1
                    guard gone < Self.goneMax else {
                        last = Array(try cursor.key().bytes)
                        return
                    }
                    continue
                }
                let key = Array(try cursor.key().bytes)
                let record = try cursor.record()
                found.append(
                    Found(key: key, record: record, header: rules.leaving(header), deadline: rules.deadline(header)))
                bytes += key.count + record.payloadCount
                if found.count == options.count || bytes >= options.bytes {
                    last = key
                    return
                }
            }
        }
    }

    // MARK: PLACE

    @Sendable static func place(_ words: CallWords) throws(CommandError) -> EntryPlan {
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
        private var seen: Set<Word> = []

        /// The options that may be given only once. NEVER and PXAT count as one option, because both set the deadline.
        private enum Word { case storedAt, absent, deadline, grace, codec, tags, version, over }

        init(_ words: CallWords) throws(CommandError) {
            var index = 3
            while index < words.count { index += try take(words, index) }
            guard seen.contains(.storedAt) else {
                throw CommandError("ERR PLACE needs STOREDAT and milliseconds since 1970")
            }
            if version == nil ? over != nil : isForAbsent { throw .syntax }
        }

        /// Parses the option that begins at `index`.
        /// - Returns: the number of words that the option has.
        private mutating func take(_ words: CallWords, _ index: Int) throws(CommandError) -> Int {
            if words.isWord(index, "NX") {
                try note(.absent)
                isForAbsent = true
                return 1
            }
            if words.isWord(index, "NEVER") {
                try note(.deadline)
                rule = .ownNever
                return 1
            }
            guard index + 1 < words.count else { throw .syntax }
            if words.isWord(index, "STOREDAT") {
                try note(.storedAt)
                storedAt = try Self.past(words, index + 1)
            } else if words.isWord(index, "PXAT") {
                try note(.deadline)
                let deadline = try words.integer(index + 1)
                guard deadline > 0 else { throw CommandError("ERR invalid expire time in '\(words.name)' command") }
                let (sum, overflow) = deadline.addingReportingOverflow(timeAhead(words))
                rule = .own(overflow ? deadline : sum)
            } else if words.isWord(index, "GRACE") {
                try note(.grace)
                grace = try words.grace(index + 1)
            } else if words.isWord(index, "CODEC") {
                try note(.codec)
                codec = try Self.codec(words.text(index + 1))
            } else if words.isWord(index, "VERSION") {
                try note(.version)
                version = try words.version(index + 1)
            } else if words.isWord(index, "OVER") {
                try note(.over)
                over = try words.integer(index + 1)
            } else if words.isWord(index, "TAGS") {
                try note(.tags)
                return 2 + (try takeTags(words, index + 1))
            } else {
                throw .syntax
            }
            return 2
        }

        private mutating func note(_ word: Word) throws(CommandError) {
            guard seen.insert(word).inserted else { throw .syntax }
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

        private mutating func takeTags(_ words: CallWords, _ index: Int) throws(CommandError) -> Int {
            guard let count = parseInteger(words.bytes(index)), count > 0, count < words.count - index else {
                throw CommandError("ERR TAGS needs the number of tags (1 or more), followed by the tags")
            }
            do throws(TagRules.Impossible) {
                tags = try Tags(checking: (0..<Int(count)).map { words.array(index + 1 + $0) })
            } catch {
                throw CommandError("ERR \(error.message)")
            }
            return Int(count)
        }
    }
}
