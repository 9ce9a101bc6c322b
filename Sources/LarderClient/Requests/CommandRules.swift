import RESP

/// Which commands may be sent as they are, where.
enum CommandRules {
    /// On a connection that others use too: nothing that changes its state.
    case shared
    /// Between MULTI and EXEC.
    case transaction
    /// On a connection of the caller's own: all that is answered with one reply.
    case own

    /// The longest word of a request, and so the longest value, in bytes: 512 MiB.
    static let wordBytesMax = RESPLimits().bulkBytesMax

    /// Answered by messages instead of replies, or not at all.
    private static let withoutReply: Set<String> = [
        "MONITOR", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUBSCRIBE", "SUNSUBSCRIBE", "UNSUBSCRIBE",
    ]
    /// Leave the connection in another state.
    private static let stateful: Set<String> = [
        "ASKING", "AUTH", "DISCARD", "EXEC", "HELLO", "MULTI", "QUIT", "READONLY", "READWRITE", "RESET", "SELECT",
        "SNAPSHOT", "UNWATCH", "WATCH",
    ]
    private static let inTransaction: Set<String> = ["DISCARD", "EXEC", "HELLO", "MULTI", "QUIT", "RESET", "WATCH"]
    /// Parts of CLIENT that do so.
    private static let statefulOfClient: Set<String> = ["CACHING", "NO-EVICT", "NO-TOUCH", "REPLY", "TRACKING"]

    /// - Throws: `invalidArgument` for a command that may not be sent here, or has no name.
    func check(_ commands: [[[UInt8]]]) throws(LarderClientError) {
        for words in commands {
            guard let first = words.first, !first.isEmpty else {
                throw LarderClientError(
                    .invalidArgument, "a command has at least one word, its name", operation: "command")
            }
            try Self.checkLengths(words)
            guard first.count <= 16 else { continue }
            let name = String(decoding: first, as: UTF8.self).uppercased()
            if Self.withoutReply.contains(name) {
                throw refusal(name, "use subscribe(to:) for messages")
            }
            switch self {
            case .shared:
                guard Self.stateful.contains(name) || isStateful(name, words) else { continue }
                throw refusal(
                    name, "it changes the state of a connection that others use too: see withConnection, transaction")
            case .transaction:
                guard Self.inTransaction.contains(name) || name == "SELECT" else { continue }
                throw refusal(name, "it has no place in a transaction")
            case .own:
                guard name == "CLIENT", words.count > 1, words[1].count <= 8,
                    String(decoding: words[1], as: UTF8.self).uppercased() == "REPLY"
                else { continue }
                throw refusal("CLIENT REPLY", "every request needs its reply")
            }
        }
    }

    /// - Throws: `invalidArgument` for a word that is longer than any server takes.
    static func checkLengths(_ words: [[UInt8]]) throws(LarderClientError) {
        for word in words where word.count > Self.wordBytesMax {
            throw LarderClientError(
                .invalidArgument,
                "a word of the command has \(word.count) bytes, and may have at most \(Self.wordBytesMax)",
                operation: words.first.map { printableKey($0) } ?? "command")
        }
    }

    private func isStateful(_ name: String, _ words: [[UInt8]]) -> Bool {
        guard name == "CLIENT", words.count > 1, words[1].count <= 16 else { return false }
        return Self.statefulOfClient.contains(String(decoding: words[1], as: UTF8.self).uppercased())
    }

    private func refusal(_ name: String, _ reason: String) -> LarderClientError {
        LarderClientError(.invalidArgument, "\(name) cannot be sent here: \(reason)", operation: name)
    }
}
