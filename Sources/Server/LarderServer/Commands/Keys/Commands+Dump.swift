import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// DUMP and RESTORE, with which clients copy values to another server.
extension CommandTable {
    static let dumpPlanners: Planners = [
        .dump: DumpCommands.dump,
        .restore: DumpCommands.restore,
    ]
}

enum DumpCommands {
    @Sendable static func dump(_ words: CallWords) throws(CommandError) -> EntryPlan {
        .records([try words.key(1)]) {
            $0[0]
        } reply: { records, replies in
            guard let record = records[0] else { return replies.null() }
            replies.bulk(record.withPayload { DumpPayload.encode($0) })
        }
    }

    @Sendable static func restore(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let options = try RestoreOptions(words)
        let key = try words.key(1)
        return .long(bytes: DumpPayload.decodedBytesMax(words.bytes(3))) {
            // As in Redis, an existing key is reported before errors in the other arguments.
            let restored = Result { () throws(CommandError) in try Restored(words, options) }
            return .change(
                ChangePlan(keys: [key], loading: options.replaces ? .none : .headers) {
                    (update, _) throws(CommandError) in
                    guard options.replaces || !update.isFresh(0) else { throw busy }
                    let restored = try restored.get()
                    if case .own(let deadline) = restored.rule, deadline <= update.now {
                        if options.replaces { update.remove(0) }
                    } else {
                        restored.value.withUnsafeBytes { update.put(0, payload: $0, rule: restored.rule) }
                    }
                    return .ok
                })
        }
    }

    private struct Restored {
        let value: [UInt8]
        let rule: DeadlineRule

        init(_ words: CallWords, _ options: RestoreOptions) throws(CommandError) {
            let ttl = try words.integer(2)
            guard ttl >= 0 else { throw CommandError("ERR Invalid TTL value, must be >= 0") }
            value = try decoded(words.bytes(3), words.valueBytesMax)
            guard ttl > 0 else {
                rule = .governed
                return
            }
            let (sum, overflows) = ttl.addingReportingOverflow(options.isAbsolute ? words.timeAhead : words.now)
            guard !overflows else { throw CommandError("ERR invalid expire time in 'restore' command") }
            rule = .own(sum)
        }
    }

    private static let busy = CommandError("BUSYKEY Target key name already exists.")

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
        // IDLETIME and FREQ are parsed, but have no effect: Larder does not count how often an entry is used.
        private var hasIdleTime = false
        private var hasFrequency = false

        init(_ words: CallWords) throws(CommandError) {
            var index = 4
            while index < words.count {
                if words.isWord(index, "REPLACE") {
                    replaces = true
                } else if words.isWord(index, "ABSTTL") {
                    isAbsolute = true
                } else if words.isWord(index, "IDLETIME"), index + 1 < words.count, !hasFrequency {
                    index += 1
                    guard try words.integer(index) >= 0 else {
                        throw CommandError("ERR Invalid IDLETIME value, must be >= 0")
                    }
                    hasIdleTime = true
                } else if words.isWord(index, "FREQ"), index + 1 < words.count, !hasIdleTime {
                    index += 1
                    guard (0...255).contains(try words.integer(index)) else {
                        throw CommandError("ERR Invalid FREQ value, must be >= 0 and <= 255")
                    }
                    hasFrequency = true
                } else {
                    throw .syntax
                }
                index += 1
            }
        }
    }
}
