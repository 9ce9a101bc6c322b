import LarderClient
import LarderCommandCatalog

/// The connection of a shell, and what is known of its state. Single owner.
final class ShellSession {
    let client: BlockingLarderClient
    /// The database in which the next command runs.
    private(set) var database: String
    private(set) var isInTransaction = false

    init(_ client: BlockingLarderClient) {
        self.client = client
        database = client.name
    }

    /// Why a command makes no sense here; nil if it may be run.
    static func refusal(_ words: [[UInt8]]) -> String? {
        guard case .silences = CommandMetadata.row(of: words)?.effect else { return nil }
        return "without replies the results of commands would be unknown"
    }

    /// Whether more comes behind the reply of a command, on a connection of its own: see ``stream(_:_:)``.
    static func streams(_ words: [[UInt8]]) -> Bool {
        guard case .streams = CommandMetadata.row(of: words)?.effect else { return false }
        return true
    }

    /// Whether a command may be sent together with others: it changes nothing of the connection.
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

    /// Runs commands that are sent together.
    /// - Throws: when the connection is lost; then state is lost too: see ``isInTransaction``.
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

    /// Shows what comes after a command, on a connection of its own, until that ends or nothing is subscribed to.
    func stream(_ words: [[UInt8]], _ visit: (RESPValue) throws -> Void) throws {
        struct Over: Error {}
        do {
            try client.stream(words) { reply in
                try visit(reply)
                // UNSUBSCRIBE of all that there is.
                if let parts = reply.elements, parts.count == 3, parts[2] == .integer(0) { throw Over() }
                if reply.errorMessage != nil { throw Over() }
            }
        } catch is Over {}
    }

    /// The connection is lost.
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
            // With the wrong number of words it ends nothing.
            if reply.errorMessage?.hasPrefix("ERR wrong number") != true { isInTransaction = false }
        case .resets: if reply.errorMessage == nil { isInTransaction = false }
        default: break
        }
    }
}
