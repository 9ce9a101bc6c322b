import LarderCommandCatalog
import LarderRESP

/// The kinds of connections on which commands are sent unchanged, and the commands allowed on each.
enum CommandRules {
    /// On a shared connection: no commands that change its state.
    case shared
    /// Between MULTI and EXEC.
    case transaction
    /// On an exclusive connection: all commands with one reply, but none after `SELECT`, in case `SELECT` is refused.
    case own
    /// On the connection of a blocking client, which is used by its later calls too.
    case blocking

    /// The longest word of a request, and so the longest value, in bytes: 512 MiB.
    static let wordBytesMax = RESPLimits().bulkBytesMax

    /// Checks that all commands are allowed on this kind of connection.
    /// - Throws: `invalidArgument` for a command that is not allowed here, or has no name.
    func check(_ commands: [[[UInt8]]]) throws(LarderClientError) {
        for words in commands {
            guard let first = words.first, !first.isEmpty else {
                throw LarderClientError(
                    .invalidArgument, "a command must have at least one word, its name", operation: "command")
            }
            try Self.checkLengths(words)
            guard let row = CommandMetadata.row(of: words), let reason = refusal(of: row) else { continue }
            let name = row.name.uppercased().split(separator: "|").joined(separator: " ")
            throw LarderClientError(.invalidArgument, "\(name) cannot be sent here: \(reason)", operation: name)
        }
        try checkOrder(commands)
    }

    /// Checks that no command follows a `SELECT`. If `SELECT` were refused, the command would run in the previous
    /// database.
    /// - Throws: `invalidArgument` if `SELECT` is not the last command.
    private func checkOrder(_ commands: [[[UInt8]]]) throws(LarderClientError) {
        for words in commands.dropLast() {
            guard case .selectsDatabase = CommandMetadata.row(of: words)?.effect else { continue }
            throw LarderClientError(
                .invalidArgument,
                "SELECT must be the last command of a pipeline: if it were refused, later commands would run in "
                    + "the previous database; send them after SELECT has succeeded", operation: "SELECT")
        }
    }

    /// Returns why a command is not allowed here; nil if it is.
    private func refusal(of row: CommandMetadata) -> String? {
        switch (self, row.effect) {
        case (_, .streams): "use LarderClient's subscribe(to:) for messages"
        case (_, .silences): "it turns off replies, and the client needs a reply to every request"
        case (.blocking, .beginsTransaction): "send it in one pipeline with its commands and EXEC"
        case (.own, _), (.blocking, _), (_, .none), (_, .names), (_, .endsDaemon): nil
        case (.shared, _):
            "it would change the state of a shared connection: use withConnection or transaction"
        case (.transaction, _): "it is not allowed in a transaction"
        }
    }

    /// Checks the lengths of the words of a command.
    /// - Throws: `invalidArgument` for a word that is longer than any server accepts.
    static func checkLengths(_ words: [[UInt8]]) throws(LarderClientError) {
        for word in words where word.count > Self.wordBytesMax {
            throw LarderClientError(
                .invalidArgument,
                "a word of the command has \(word.count) bytes; the limit is \(Self.wordBytesMax)",
                operation: words.first.map { printableKey($0) } ?? "command")
        }
    }
}
