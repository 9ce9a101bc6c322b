// Commands that are sent to the daemon unchanged.

import CommandCatalog
import LarderClient

/// Sends a command of the command table and writes its reply.
enum Raw {
    static func run(_ command: CommandMetadata, _ words: [[UInt8]], _ context: Context) throws -> ExitCode {
        if let reason = refusal(command, words) {
            throw UsageError("\(command.name.uppercased()) cannot be sent from here: \(reason)")
        }
        let client = try context.connect()
        let reply: RESPValue
        do throws(LarderClientError) {
            reply = try client.command(bytes: words)
        } catch {
            guard error.code == .closed, case .endsDaemon = command.effect else { throw error }
            // A daemon that shuts down on request closes the connection instead of replying.
            if context.options.json { context.output.json(.text("OK")) } else { context.output.line("OK") }
            return .done
        }
        if let text = reply.errorMessage {
            throw LarderClientError.server(text, operation: command.name)
        }
        if context.options.json {
            context.output.json(FieldText.json(reply, of: CommandMetadata.row(of: words) ?? command))
        } else {
            write(reply, indent: 0, to: context.output)
        }
        return reply.isNull ? .notFound : .done
    }

    /// The reason why a command makes no sense in a program that sends one command and ends; nil for all other
    /// commands.
    private static func refusal(_ command: CommandMetadata, _ words: [[UInt8]]) -> String? {
        let ends = "each call of larderctl has its own connection, which ends with the answer"
        switch (CommandMetadata.row(of: words) ?? command).effect {
        case .none, .names, .introduces, .closes, .endsDaemon: return nil
        case .beginsTransaction, .endsTransaction, .changesState, .resets, .silences: return ends
        case .selectsDatabase: return "\(ends); --database NAME says where"
        case .streams:
            if let verb = Verb.all.first(where: { $0.name == command.name }) {
                return "larderctl \(verb.name) shows it"
            }
            return "larderctl would end before its later output; use redis-cli -s SOCKET"
        }
    }

    /// Text for people and simple scripts: a line for each element, with inner aggregates indented. Null is empty at
    /// the top level, and (nil) inside aggregates.
    private static func write(_ reply: RESPValue, indent: Int, to output: Output) {
        let margin = Array(repeating: UInt8(ascii: " "), count: indent)
        switch reply {
        case .null:
            if indent > 0 { output.line(margin + Array("(nil)".utf8)) }
        case .array(let elements), .set(let elements), .push(let elements):
            for element in elements { writeElement(element, indent: indent, to: output) }
        case .map(let pairs):
            for pair in pairs { write(pair, indent: indent, to: output) }
        default:
            output.line(margin + word(reply))
        }
    }

    private static func writeElement(_ element: RESPValue, indent: Int, to output: Output) {
        let margin = Array(repeating: UInt8(ascii: " "), count: indent)
        switch element {
        case .array, .set, .map, .push:
            output.line(margin + Array("-".utf8))
            write(element, indent: indent + 2, to: output)
        default:
            output.oneLine(margin + word(element))
        }
    }

    private static func write(_ pair: RESPValue.Pair, indent: Int, to output: Output) {
        let name = Array(repeating: UInt8(ascii: " "), count: indent) + word(pair.key) + Array(":".utf8)
        switch pair.value {
        case .array, .set, .map, .push:
            output.oneLine(name)
            write(pair.value, indent: indent + 2, to: output)
        default:
            output.oneLine(name + Array(" ".utf8) + word(pair.value))
        }
    }

    /// A value that is not an aggregate, as one word.
    private static func word(_ reply: RESPValue) -> [UInt8] {
        switch reply {
        case .null: Array("(nil)".utf8)
        case .error(let text): Array("(error) \(text)".utf8)
        case .integer(let number): Array("\(number)".utf8)
        case .double(let number): Array("\(number)".utf8)
        case .boolean(let value): Array("\(value)".utf8)
        default: reply.bytes ?? Array("(…)".utf8)
        }
    }
}
