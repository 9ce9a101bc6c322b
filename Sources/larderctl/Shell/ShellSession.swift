import LarderClient
import LarderCommandCatalog

/// The connection of a shell, with the selected database and the state of a transaction. For one thread at a time.
final class ShellSession {
    let client: BlockingLarderClient
    /// The database in which the next command runs.
    private(set) var database: String
    private(set) var isInTransaction = false

    init(_ client: BlockingLarderClient) {
        self.client = client
        database = client.name
    }

    /// The effect of a command on the connection. If it is `streams`, messages follow the reply, so that the command
    /// needs a separate connection: see ``stream(_:_:)``.
    static func effect(_ words: [[UInt8]]) -> ConnectionEffect {
        isLive(words) ? .streams : CommandMetadata.row(of: words)?.effect ?? ConnectionEffect.none
    }

    /// Whether the words are those of QUERY LIVE.
    static func isLive(_ words: [[UInt8]]) -> Bool {
        words.prefix(2).map { String(decoding: $0, as: UTF8.self).uppercased() } == ["QUERY", "LIVE"]
    }

    /// Returns why a command cannot be used in a shell; nil if it can.
    static func refusal(_ words: [[UInt8]]) -> String? {
        effect(words) == .silences ? "without replies the results of commands would be unknown" : nil
    }

    /// Sends commands as a pipeline and returns their replies.
    /// - Throws: if the connection is lost. A transaction is then lost too: check ``isInTransaction`` before the call.
    func run(_ commands: [[[UInt8]]]) throws(LarderClientError) -> [RESPValue] {
        do throws(LarderClientError) {
            let replies = try client.pipeline(commands)
            for (words, reply) in zip(commands, replies) { note(words, reply) }
            if !isInTransaction { database = client.name }
            return replies
        } catch {
            guard commands.count == 1, error.code == .closed, Self.effect(commands[0]) == .endsDaemon else {
                throw error
            }
            // A daemon that executes SHUTDOWN closes the connection instead of replying, so this is success.
            return [.simpleString("OK")]
        }
    }

    /// Sends a command on a separate connection, and calls `visit` for each message. Returns when the connection is
    /// closed, no subscription is left, or an error arrives.
    func stream(_ words: [[UInt8]], _ visit: (RESPValue) throws -> Void) throws {
        struct Over: Error {}
        do {
            try client.stream(words) { reply in
                try visit(reply)
                // The reply to UNSUBSCRIBE with 0 remaining subscriptions.
                if let parts = reply.elements, parts.count == 3, parts[2] == .integer(0) { throw Over() }
                if reply.errorMessage != nil { throw Over() }
            }
        } catch is Over {}
    }

    /// Resets the state after the connection was lost.
    func forgetTransaction() {
        isInTransaction = false
        database = client.name
    }

    private func note(_ words: [[UInt8]], _ reply: RESPValue) {
        switch Self.effect(words) {
        case _ where reply == .simpleString("QUEUED"): isInTransaction = true
        case .beginsTransaction where reply.errorMessage == nil: isInTransaction = true
        case .resets where reply.errorMessage == nil: isInTransaction = false
        // With a wrong number of arguments, the command does not end the transaction.
        case .endsTransaction where reply.errorMessage?.hasPrefix("ERR wrong number") != true: isInTransaction = false
        default: break
        }
    }
}
