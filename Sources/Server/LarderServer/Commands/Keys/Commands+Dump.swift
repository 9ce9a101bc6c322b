import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// DUMP and RESTORE, with which clients copy values to another server.
extension CommandTable {
    static let dumpPlanners: Planners = [
        .dump: dump,
        .restore: restore,
    ]

    @Sendable private static func dump(_ words: CallWords) throws(CommandError) -> EntryPlan {
        .records([try words.key(1)]) {
            $0[0]
        } reply: { records, replies in
            guard let record = records[0] else { return replies.null() }
            replies.bulk(record.withPayload { DumpPayload.encode($0) })
        }
    }

    @Sendable private static func restore(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let options = try RestoreOptions(words)
        let key = try words.key(1)
        return .long(bytes: DumpPayload.decodedBytesMax(words.bytes(3))) {
            // As in Redis, an existing key is reported before errors in the other arguments, and a bad payload before a
            // time to live that is too long.
            let restored = Result { () throws(CommandError) in
                let ttl = try words.integer(2)
                guard ttl >= 0 else { throw CommandError("ERR Invalid TTL value, must be >= 0") }
                let value = try decoded(words.bytes(3), words.valueBytesMax)
                return (try rule(ttl, words, isAbsolute: options.isAbsolute), value)
            }
            return .change(
                ChangePlan(keys: [key], loading: options.replaces ? .none : .headers) {
                    (update, _) throws(CommandError) in
                    guard options.replaces || !update.isFresh(0) else {
                        throw CommandError("BUSYKEY Target key name already exists.")
                    }
                    let (rule, value) = try restored.get()
                    if case .own(let deadline) = rule, deadline <= update.now {
                        if options.replaces { update.remove(0) }
                    } else {
                        value.withUnsafeBytes { update.put(0, payload: $0, rule: rule) }
                    }
                    return .ok
                })
        }
    }

    private static func rule(_ ttl: Int64, _ words: CallWords, isAbsolute: Bool) throws(CommandError) -> DeadlineRule {
        guard ttl > 0 else { return .governed }
        let (sum, overflows) = ttl.addingReportingOverflow(isAbsolute ? words.timeAhead : words.now)
        guard !overflows else { throw CommandError("ERR invalid expire time in 'restore' command") }
        return .own(sum)
    }

    private static func decoded(_ payload: UnsafeRawBufferPointer, _ bytesMax: Int) throws(CommandError) -> [UInt8] {
        do throws(DumpPayload.Defect) {
            return try DumpPayload.decode(payload, bytesMax: bytesMax)
        } catch {
            switch error {
            case .footer: throw CommandError("ERR DUMP payload version or checksum are wrong")
            case .format: throw CommandError("ERR Bad data format")
            }
        }
    }

    private struct RestoreOptions {
        private(set) var replaces = false
        private(set) var isAbsolute = false

        init(_ words: CallWords) throws(CommandError) {
            // IDLETIME and FREQ are parsed, but have no effect: Larder does not count how often an entry is used.
            var use: String?
            var options = OptionReader(words, from: 4)
            while let name = options.next() {
                switch name {
                case "replace": replaces = true
                case "absttl": isAbsolute = true
                case "idletime" where use != "freq":
                    guard try words.integer(options.value()) >= 0 else {
                        throw CommandError("ERR Invalid IDLETIME value, must be >= 0")
                    }
                    use = name
                case "freq" where use != "idletime":
                    guard (0...255).contains(try words.integer(options.value())) else {
                        throw CommandError("ERR Invalid FREQ value, must be >= 0 and <= 255")
                    }
                    use = name
                default: throw .syntax
                }
            }
        }
    }
}
