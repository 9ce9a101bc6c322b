import CommandCatalog
import LarderEngine
import RESP

/// A command of the table: its row of the catalog, with what running it needs at hand.
///
/// A class, because each command that runs passes it around.
package final class CommandSpec: Sendable {
    /// All that is known of it.
    package let metadata: CommandMetadata
    /// The name, for finding it in a request: of a subcommand the part behind the bar.
    let word: ShortWord
    package let arity: Int
    package let flags: CommandFlags
    let keys: KeyPositions
    let run: Handler
    let tag: WriteTag
    /// The commands that the second word of a call chooses from; this one itself is then not run, except where a call without a
    /// second word is one.
    package let subcommands: [CommandSpec]
    /// The row's, for counting.
    let number: Int

    package var name: String { metadata.name }

    /// Runs on the connection's event loop and must not block; what may block is deferred.
    typealias Handler = @Sendable (inout Call) throws(CommandError) -> Outcome

    init(_ row: CommandMetadata, _ handlers: [CommandMetadata: Handler]) {
        metadata = row
        word = ShortWord(String(row.ownName))
        precondition(row.ownName.utf8.count <= ShortWord.lengthMax, "a command's name is too long for the table")
        number = row.number
        arity = row.arity
        flags = row.flags
        keys = row.keys
        tag = row.tag
        subcommands = row.subcommands.map { subcommand in
            subcommand.isHelp
                ? CommandSpec(subcommand, [subcommand: Self.help(row)]) : CommandSpec(subcommand, handlers)
        }
        if row.runsByItself {
            guard let handler = handlers[row] else { preconditionFailure("\(row.name) has no handler") }
            run = handler
        } else {
            run = { _ throws(CommandError) in throw .syntax }
        }
    }

    func accepts(argumentCount: Int) -> Bool { arity >= 0 ? argumentCount == arity : argumentCount >= -arity }
}

extension CommandSpec {
    /// The subcommand of a call.
    /// - Parameters:
    ///   - word: the second word.
    ///   - count: how many words the call has.
    func subcommand(_ word: UnsafeRawBufferPointer, count: Int) throws(CommandError) -> CommandSpec {
        let name = ShortWord(word)
        guard let found = subcommands.first(where: { $0.word == name }) else {
            throw CommandError(
                "ERR unknown subcommand '", shown(word, 128), "'. Try \(self.name.uppercased()) HELP.")
        }
        guard found.accepts(argumentCount: count) else { throw .arity(found.name) }
        return found
    }

    func subcommand(named name: String) -> CommandSpec? {
        let word = ShortWord(name)
        return subcommands.first { $0.word == word }
    }

    /// Answers `COMMAND HELP` from the rows of the subcommands.
    private static func help(_ command: CommandMetadata) -> Handler {
        { call throws(CommandError) in
            let rows = command.subcommands
            let replies = call.session.replyMemory
            replies.pointee.array(count: 1 + 2 * rows.count)
            replies.pointee.simple("\(command.name.uppercased()) <subcommand> [<argument> ...]. Subcommands are:")
            for row in rows {
                let name = row.ownName.uppercased()
                replies.pointee.simple(row.syntax.isEmpty ? name : "\(name) \(row.syntax)")
                replies.pointee.simple("    \(row.summary)")
            }
            return .done
        }
    }

    /// Which words of a call are keys.
    /// - Parameter word: a word's bytes.
    func keyIndices(count: Int, _ word: (Int) -> UnsafeRawBufferPointer) -> [Int] {
        guard keys.first > 0, keys.step > 0 else { return [] }
        if keys.countAt > 0 {
            guard keys.countAt < count, let number = parseInteger(word(keys.countAt)), number > 0 else { return [] }
            let room = (count - keys.first + keys.step - 1) / keys.step
            return (0..<max(0, min(room, Int(clamping: number)))).map { keys.first + $0 * keys.step }
        }
        let last = min(count - 1, keys.last < 0 ? count + keys.last : keys.last)
        guard keys.first <= last else { return [] }
        return Array(stride(from: keys.first, through: last, by: keys.step))
    }
}

/// How a handler left its command.
enum Outcome {
    /// The reply is written.
    case done
    /// The reply is written, and the connection is to be closed once it is sent.
    case close
    /// The reply comes from a thread that may block; nothing is written yet.
    case deferred(DeferredWork)
}

/// Runs on a worker and writes the reply.
/// - Returns: what is then done on the connection's loop, if anything.
typealias DeferredWork = @Sendable (inout ReplyBuffer) throws(CommandError) -> (@Sendable (Session) -> Void)?

/// An error reply.
struct CommandError: Error, Equatable {
    /// With its code: `ERR syntax error`. May repeat bytes of the request, which need not be UTF-8.
    let bytes: [UInt8]

    init(_ text: String) { bytes = Array(text.utf8) }

    /// Text with bytes of the request inside: `before`, `shown`, `behind`, `rest`.
    init(_ before: String, _ shown: [UInt8], _ behind: String, _ rest: [UInt8] = []) {
        bytes = Array(before.utf8) + shown + Array(behind.utf8) + rest
    }

    var text: String { String(decoding: bytes, as: UTF8.self) }

    static let syntax = CommandError("ERR syntax error")
    static let notAnInteger = CommandError("ERR value is not an integer or out of range")

    static func tooLongReply(_ limits: Limits) -> CommandError {
        CommandError(
            "ERR the values are longer than \(limits.replyBytesMax) bytes together, the most in one reply (--max-reply)"
        )
    }

    static func arity(_ name: String) -> CommandError {
        CommandError("ERR wrong number of arguments for '\(name)' command")
    }

    /// What EXEC answers where it may not run.
    static func aborted(_ error: CommandError) -> CommandError {
        let text = error.bytes.starts(with: Array("ERR ".utf8)) ? Array(error.bytes.dropFirst(4)) : error.bytes
        return CommandError("EXECABORT Transaction discarded because of: ", text, "")
    }

    init(_ error: LarderError) { self.init("ERR \(error)") }
}
