import LarderEngine
import LarderOriginClients
import LarderRESP

/// The command ORIGIN.
extension CommandTable {
    @Sendable static func origin(_ call: inout Call) throws(CommandError) -> Outcome {
        if let outcome = try call.awaitedReply() { return outcome }
        let (server, name) = (call.server, call.database.name)
        guard call.count > 1 else {
            return .later { (reply) throws(CommandError) in
                let fields = try server.origins.tier(of: name)?.fields ?? [("url", "")]
                reply.map(count: fields.count)
                for (name, value) in fields {
                    if let number = Int64(value) { reply.field(name, number) } else { reply.field(name, value) }
                }
            }
        }
        if call.isWord(1, "PATH") {
            let nodes = (2..<call.count).map { call.text($0) }
            return try call.awaitReply { (reply) throws(CommandError) in
                try server.origins.path(from: name, behind: nodes) { path in
                    reply(.success(.array(path.map { .bulk(Array($0.utf8)) })))
                }
            }
        }
        var settings: OriginSettings?
        let discards = call.count > 2 && call.isWord(call.count - 1, "DISCARD")
        let count = discards ? call.count - 1 : call.count
        if !(count == 2 && call.isWord(1, "NONE")) {
            settings = try OriginSettings(words: (1..<count).map { call.text($0) })
            try settings?.checkHasNoSecret()
        }
        if settings?.reads.hearing == .lifetimes, call.rules.policy.intervalMilliseconds == nil {
            throw CommandError(
                "ERR with LIFETIMES, entries are fresh until they expire, but the policy of this database is never, so "
                    + "they would not expire: set another policy first, such as POLICY high")
        }
        let (record, mayDrop) = (call.session.record, !call.session.modes.isSilent)
        return try call.awaitReply { [settings] reply in
            server.origins.inTurn { (origins) throws(CommandError) in
                // If the client has disconnected, skip its change, which would delay the changes of other clients.
                if mayDrop, record.isGone { throw CommandError("ERR the client disconnected: nothing was changed") }
                try origins.set(settings, for: name, discards: discards)
            } then: {
                reply($0.map { .simpleString("OK") })
            }
        }
    }
}
