import LarderClient
import LarderCommandCatalog

/// The connection of a shell, and its known state. Single owner.
final class ShellSession {
    let client: BlockingLarderClient
    /// The database of the next command.
    private(set) var database: String
    private(set) var isInTransaction = false

    init(_ client: BlockingLarderClient) {
        self.client = client
        database = client.name
    }

    /// Why a command must not be used here; nil if it may be run.
    static func refusal(_ words: [[UInt8]]) -> String? {
        guard case .silences = CommandMetadata.row(of: words)?.effect else { return nil }
        return "without replies the results of commands would be unknown"
    }

    /// Whether a command is followed by messages, and so needs its own connection: see ``stream(_:_:)``.
    static func streams(_ words: [[UInt8]]) -> Bool {
        guard case .streams = CommandMetadata.row(of: words)?.effect else { return false }
        return true
    }

    /// Whether a command may be pipelined, because it does not change the connection's state.
    static func isPlain(_ words: [[UInt8]]) -> Bool {
        guard let row = CommandMetadata.row(of: words) else { return true }
        return switch row.effect {
        case .none, .names: true
        default: false
        }
    }

    static func closes(_ words: [[UInt8]]) -> Bool {
        guard case .closes = CommandMetadata.row(of: words)?.effect else { return false }
        return true
    }

    /// Runs pipelined commands.
    /// - Throws: if the connection is lost; a transaction is then lost too, see ``isInTransaction``.
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
            // A daemon that shuts down on request closes the connection instead of replying.
            return [.simpleString("OK")]
        }
    }

    /// Opens a connection for the command, and shows its messages until the connection is closed or no subscription is
    /// left.
    func stream(_ words: [[UInt8]], _ visit: (RESPValue) throws -> Void) throws {
        struct Over: Error {}
        do {
            try client.stream(words) { reply in
                try visit(reply)
                // UNSUBSCRIBE from everything.
                if let parts = reply.elements, parts.count == 3, parts[2] == .integer(0) { throw Over() }
                if reply.errorMessage != nil { throw Over() }
            }
        } catch is Over {}
    }

    /// Called when the connection is lost.
    func forgetTransaction() {
        isInTransaction = false
        database = client.name
    }

    private func note(_ words: [[UInt8]], _ reply: RESPValue) {
        guard let row = CommandMetadata.row(of: words) else { return }
        if reply == .simpleString("QUEUED") {
            isInTransaction = true
            return
        }
        switch row.effect {
        case .beginsTransaction: if reply.errorMessage == nil { isInTransaction = true }
        case .endsTransaction:
            // With the wrong number of words, the command has no effect.
            if reply.errorMessage?.hasPrefix("ERR wrong number") != true { isInTransaction = false }
        case .resets: if reply.errorMessage == nil { isInTransaction = false }
        default: break
        }
    }
}
