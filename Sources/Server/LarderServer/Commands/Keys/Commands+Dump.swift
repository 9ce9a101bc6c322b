import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// DUMP and RESTORE, with which clients copy values to another server.
extension CommandTable {
    static let dumpCommands: Handlers = [
        .dump: DumpCommands.dump,
        .restore: DumpCommands.restore,
    ]
}

enum DumpCommands {
    @Sendable static func dump(_ call: inout Call) throws(CommandError) -> Outcome {
        // Copy the value here, and compress it after `read`, which holds a lock.
        var value: [UInt8]?
        try call.read(1) { _, payload in value = Array(payload) }
        if let value {
            try call.mayTakeLong(bytes: value.count)
            call.session.replies.bulk(value.withUnsafeBytes { DumpPayload.encode($0) })
        } else {
            call.session.replies.null()
        }
        return .done
    }

    @Sendable static func restore(_ call: inout Call) throws(CommandError) -> Outcome {
        let options = try RestoreOptions(call)
        let key = try call.key(1)
        // As in Redis, report an existing key before errors in the other arguments.
        if !options.replaces, try call.uncountedFacts(1) != nil { throw busy }
        let ttl = try call.integer(2)
        guard ttl >= 0 else { throw CommandError("ERR Invalid TTL value, must be >= 0") }
        try call.mayTakeLong(bytes: DumpPayload.decodedBytesMax(call.bytes(3)))
        let value = try decoded(call.bytes(3), call.server.limits.valueBytesMax)
        var rule = DeadlineRule.governed
        if ttl > 0 {
            let (sum, overflows) = ttl.addingReportingOverflow(options.isAbsolute ? call.timeAhead : call.now)
            guard !overflows else { throw CommandError("ERR invalid expire time in 'restore' command") }
            rule = .own(sum)
        }
        let isStored = try call.update([key], loading: !options.replaces, headersOnly: true) { update -> Bool in
            guard options.replaces || !update.isFresh(0) else { return false }
            if case .own(let deadline) = rule, deadline <= update.now {
                if options.replaces { update.remove(0) }
            } else {
                value.withUnsafeBytes { update.put(0, payload: $0, rule: rule) }
            }
            return true
        }
        guard isStored else { throw busy }
        return call.ok()
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

        init(_ call: Call) throws(CommandError) {
            var index = 4
            while index < call.count {
                if call.isWord(index, "REPLACE") {
                    replaces = true
                } else if call.isWord(index, "ABSTTL") {
                    isAbsolute = true
                } else if call.isWord(index, "IDLETIME"), index + 1 < call.count, !hasFrequency {
                    index += 1
                    guard try call.integer(index) >= 0 else {
                        throw CommandError("ERR Invalid IDLETIME value, must be >= 0")
                    }
                    hasIdleTime = true
                } else if call.isWord(index, "FREQ"), index + 1 < call.count, !hasIdleTime {
                    index += 1
                    guard (0...255).contains(try call.integer(index)) else {
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
