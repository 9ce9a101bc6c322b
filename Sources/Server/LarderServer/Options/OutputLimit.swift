/// The limits of unread output: Redis' `client-output-buffer-limit`. Each class of clients has a hard limit in bytes,
/// beyond which a client is disconnected, a soft limit in bytes, and the seconds for which a client may exceed the soft
/// limit; 0 for no limit.
///
/// `normal` clients send commands: beyond the limit, the daemon stops reading from them, and disconnects them if they
/// read nothing for `--reply-timeout` seconds. Subscribers are `pubsub` (`--max-subscriber-output`); only their limits
/// can be changed at run time. There are no replicas.
enum OutputLimit {
    /// The largest limit, in bytes; larger values are reduced to it.
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

    /// Parses `class hard soft seconds`, any number of times, with Redis' error texts.
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
        // As in Redis, the last limit of a class is used.
        guard let new = asked.last(where: { $0.name == "pubsub" })?.limit.map({ Int(clamping: min($0, bytesMax)) })
        else { return .success { _ in } }
        return .success { server in
            server.settings.subscriberBytesMax.store(new[0], ordering: .relaxed)
            server.settings.subscriberBytesSoft.store(new[1], ordering: .relaxed)
            server.settings.subscriberSoftSeconds.store(new[2], ordering: .relaxed)
        }
    }
}
