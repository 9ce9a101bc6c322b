/// Redis' setting `client-output-buffer-limit`: limits for the output that a client has not read. Each class of clients
/// has three values: a hard limit and a soft limit, in bytes, and a number of seconds. A client above the hard limit is
/// disconnected, and so is a client that stays above the soft limit for more than these seconds. 0 means no limit.
///
/// The class `pubsub` contains subscribers (`--max-subscriber-output`). Only its limits can be changed while the daemon
/// runs. The class `normal` contains other clients. If such a client is above the soft limit, the daemon stops reading
/// from it, and disconnects a client that reads nothing for `--reply-timeout`. `slave` exists only for compatibility:
/// there are no replicas.
enum OutputLimit {
    /// The largest limit in bytes. Larger values are reduced to it.
    private static let bytesMax = Int64(1) << 50

    private static func fixed(_ limits: Limits) -> [(name: String, limit: [Int64])] {
        [
            ("normal", [0, Int64(limits.outputBytesPause), limits.outputStallMilliseconds / 1000]),
            ("slave", [0, 0, 0]),
        ]
    }

    @Sendable static func text(_ server: ServerState) -> String {
        let settings = server.settings
        let subscribers = [
            settings.subscriberBytesMax.read(), settings.subscriberBytesSoft.read(),
            settings.subscriberSoftSeconds.read(),
        ]
        return (fixed(server.limits) + [("pubsub", subscribers.map(Int64.init))])
            .map { "\($0.name) " + $0.limit.map(String.init).joined(separator: " ") }
            .joined(separator: " ")
    }

    /// Parses one or more limits, each `class hard soft seconds`. Error messages are the same as in Redis.
    @Sendable static func change(
        _ server: ServerState, _ text: String
    ) -> Result<@Sendable (ServerState) -> Void, Setting.Problem> {
        let words = text.split(separator: " ", omittingEmptySubsequences: true)
        guard words.count % 4 == 0 else {
            return .failure(Setting.Problem(text: "Wrong number of arguments in buffer limit configuration."))
        }
        var asked: [(name: String, limit: [Int64])] = []
        for start in stride(from: 0, to: words.count, by: 4) {
            let name = words[start].lowercased()
            guard ["normal", "slave", "replica", "pubsub"].contains(name) else {
                return .failure(Setting.Problem(text: "Invalid client class specified in buffer limit configuration."))
            }
            let limit = [Setting.bytes(String(words[start + 1])), Setting.bytes(String(words[start + 2]))]
            guard let hard = limit[0], let soft = limit[1], let seconds = Int32(words[start + 3]), seconds >= 0 else {
                return .failure(
                    Setting.Problem(
                        text: "Error in hard, soft or soft_seconds setting in buffer limit configuration."))
            }
            asked.append((name == "replica" ? "slave" : name, [hard, soft, Int64(seconds)]))
        }
        for (name, limit) in fixed(server.limits)
        where asked.contains(where: { $0.name == name && $0.limit != limit }) {
            return .failure(Setting.Problem(text: Setting.immutable))
        }
        // As in Redis, the last of several limits for the same class applies.
        guard let new = asked.last(where: { $0.name == "pubsub" })?.limit.map({ Int(clamping: min($0, bytesMax)) })
        else { return .success { _ in } }
        return .success { server in
            server.settings.subscriberBytesMax.store(new[0], ordering: .relaxed)
            server.settings.subscriberBytesSoft.store(new[1], ordering: .relaxed)
            server.settings.subscriberSoftSeconds.store(new[2], ordering: .relaxed)
        }
    }
}
