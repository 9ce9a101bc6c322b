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

    /// Returns why a command cannot be used in a shell; nil if it can.
    static func refusal(_ words: [[UInt8]]) -> String? {
        CommandMetadata.row(of: words)?.effect == .silences
            ? "without replies the results of commands would be unknown" : nil
    }

    /// Whether messages follow the reply to a command, so that it needs a separate connection: see ``stream(_:_:)``.
    static func streams(_ words: [[UInt8]]) -> Bool { CommandMetadata.row(of: words)?.effect == .streams }

    /// Whether a command may be pipelined with others, because it does not change the state of the connection.
    static func isPlain(_ words: [[UInt8]]) -> Bool {
        [ConnectionEffect.none, .names].contains(CommandMetadata.row(of: words)?.effect ?? ConnectionEffect.none)
    }

    static func closes(_ words: [[UInt8]]) -> Bool { CommandMetadata.row(of: words)?.effect == .closes }

    /// Sends commands as a pipeline and returns their replies.
    /// - Throws: if the connection is lost. A transaction is then lost too: check ``isInTransaction`` before the call.
    func run(_ commands: [[[UInt8]]]) throws(LarderClientError) -> [RESPValue] {
        do throws(LarderClientError) {
            let replies = try client.pipeline(commands)
            for (words, reply) in zip(commands, replies) { note(words, reply) }
            if !isInTransaction { database = client.name }
            return replies
        } catch {
            guard commands.count == 1, error.code == .closed,
                case .endsDaemon = CommandMetadata.row(of: commands[0])?.effect
            else { throw error }
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
        guard let row = CommandMetadata.row(of: words) else { return }
        switch row.effect {
        case _ where reply == .simpleString("QUEUED"): isInTransaction = true
        case .beginsTransaction: if reply.errorMessage == nil { isInTransaction = true }
        case .endsTransaction:
            // With a wrong number of arguments, the command does not end the transaction.
            if reply.errorMessage?.hasPrefix("ERR wrong number") != true { isInTransaction = false }
        case .resets: if reply.errorMessage == nil { isInTransaction = false }
        default: break
        }
    }
}
