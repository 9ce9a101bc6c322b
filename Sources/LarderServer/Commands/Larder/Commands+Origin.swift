import LarderEngine
import Origins
import RESP

enum OriginCommands {
    @Sendable static func origin(_ call: inout Call) throws(CommandError) -> Outcome {
        let (server, name) = (call.server, call.database.name)
        guard call.count > 1 else {
            return .deferred { (reply) throws(CommandError) in
                show(try server.origins.tier(of: name), in: &reply)
                return nil
            }
        }
        if call.isWord(1, "PATH") {
            let nodes = (2..<call.count).map { call.text($0) }
            return .deferred { (reply) throws(CommandError) in
                let path = try server.origins.path(from: name, behind: nodes)
                reply.array(count: path.count)
                for larder in path { reply.bulk(larder) }
                return nil
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
                "ERR with LIFETIMES an entry is believed until its time is over, and the policy of this database is "
                    + "never: set another one first, such as POLICY high")
        }
        return .deferred { [settings] (reply) throws(CommandError) in
            try server.origins.set(settings, for: name, discards: discards)
            reply.simple("OK")
            return nil
        }
    }

    private static func show(_ tier: OriginTier?, in reply: inout ReplyBuffer) {
        let fields = tier?.fields ?? [("url", "")]
        reply.map(count: fields.count)
        for (name, value) in fields {
            reply.bulk(name)
            if let number = Int64(value) { reply.integer(number) } else { reply.bulk(value) }
        }
    }
}
