import LarderCommandCatalog
import LarderRESP

/// Which commands may be sent as they are, where.
enum CommandRules {
    /// On a connection that others use too: nothing that changes its state.
    case shared
    /// Between MULTI and EXEC.
    case transaction
    /// On a connection of the caller's own: all that is answered with one reply, but nothing behind `SELECT`, which may be
    /// refused.
    case own
    /// Alone on the connection of a blocking client, whose own calls follow.
    case blocking

    /// The longest word of a request, and so the longest value, in bytes: 512 MiB.
    static let wordBytesMax = RESPLimits().bulkBytesMax

    /// - Throws: `invalidArgument` for a command that may not be sent here, or has no name.
    func check(_ commands: [[[UInt8]]]) throws(LarderClientError) {
        for words in commands {
            guard let first = words.first, !first.isEmpty else {
                throw LarderClientError(
                    .invalidArgument, "a command has at least one word, its name", operation: "command")
            }
            try Self.checkLengths(words)
            guard let row = CommandMetadata.row(of: words), let reason = refusal(of: row) else { continue }
            let name = row.name.uppercased().split(separator: "|").joined(separator: " ")
            throw LarderClientError(.invalidArgument, "\(name) cannot be sent here: \(reason)", operation: name)
        }
        try checkOrder(commands)
    }

    /// - Throws: `invalidArgument` for commands that are sent behind a `SELECT` before its reply is known: if it is refused,
    ///   they would be carried out in the database that was selected before.
    private func checkOrder(_ commands: [[[UInt8]]]) throws(LarderClientError) {
        for words in commands.dropLast() {
            guard case .selectsDatabase = CommandMetadata.row(of: words)?.effect else { continue }
            throw LarderClientError(
                .invalidArgument,
                "SELECT cannot be sent together with commands behind it: if it were refused, they would be carried out in "
                    + "the database before; send it first, and them when it is done", operation: "SELECT")
        }
    }

    /// Why a command may not be sent here; nil if it may.
    private func refusal(of row: CommandMetadata) -> String? {
        switch (self, row.effect) {
        case (_, .streams): "use LarderClient's subscribe(to:) for messages"
        case (_, .silences): "every request needs its reply"
        case (.blocking, .beginsTransaction): "send it in one pipeline with its commands and EXEC"
        case (.own, _), (.blocking, _), (_, .none), (_, .names), (_, .endsDaemon): nil
        case (.shared, _):
            "it would change the state of a shared connection: see withConnection, transaction"
        case (.transaction, _): "it is not possible in a transaction"
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
}
