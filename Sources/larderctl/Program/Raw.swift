// Commands that are sent to the daemon unchanged.

import LarderClient
import LarderCommandCatalog

/// Sends a command to the daemon and writes the reply.
enum Raw {
    static func run(_ command: CommandMetadata, _ words: [[UInt8]], _ context: Context) throws -> ExitCode {
        if let reason = refusal(command, words) {
            throw UsageError("\(command.name.uppercased()) cannot be sent from here: \(reason)")
        }
        guard let reply = try ShellSession(try context.options.connect()).run([words]).first else { return .done }
        if let text = reply.errorMessage {
            throw LarderClientError.server(text, operation: command.name)
        }
        context.show(FieldText.json(reply, to: words)) { PlainReply.write(reply, to: $0) }
        return reply.isNull ? .notFound : .done
    }

    /// Returns why a command makes no sense in a program that sends one command and exits; nil for other commands.
    private static func refusal(_ command: CommandMetadata, _ words: [[UInt8]]) -> String? {
        let ends = "each call of larderctl uses a new connection"
        switch (CommandMetadata.row(of: words) ?? command).effect {
        case .none, .names, .introduces, .closes, .endsDaemon: return nil
        case .silences: return ends
        case .beginsTransaction, .endsTransaction, .changesState, .resets: return "\(ends); use larderctl shell"
        case .selectsDatabase: return "\(ends); use --database NAME"
        case .streams:
            return Verb.named(command.name).map { "use larderctl \($0.name)" }
                ?? "larderctl would exit before its later output; use larderctl shell"
        }
    }
}
