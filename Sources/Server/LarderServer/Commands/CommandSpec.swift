import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// A command: its metadata, and the function that runs it.
///
/// A class, so that passing a command to a function copies only a reference.
package final class CommandSpec: Sendable {
    package let metadata: CommandMetadata
    /// Plans what the command does with entries; nil if the command does more than that, and therefore has a handler.
    let planner: EntryPlan.Planner?
    private let handler: Handler?
    /// The subcommands; the second word of a call selects one of them. A call without a second word runs the command
    /// itself, if the metadata allows that.
    package let subcommands: [CommandSpec]

    package var name: String { metadata.name }
    package var arity: Int { metadata.arity }
    package var flags: CommandFlags { metadata.flags }
    var word: ShortWord { metadata.word }

    /// Runs a call on the connection's event loop. Must not block: work that would block is returned instead.
    typealias Handler = @Sendable (inout Call) throws(CommandError) -> Outcome

    init(_ row: CommandMetadata, _ handlers: CommandTable.Handlers, _ planners: CommandTable.Planners = [:]) {
        metadata = row
        subcommands = row.subcommands.map { subcommand in
            subcommand.isHelp
                ? CommandSpec(subcommand, [subcommand: Self.help(row)]) : CommandSpec(subcommand, handlers, planners)
        }
        (planner, handler) = (planners[row], handlers[row])
        if row.runsByItself {
            precondition((planner == nil) != (handler == nil), "\(row.name) needs either a planner or a handler")
        }
    }

    /// Runs a call.
    func run(_ call: inout Call) throws(CommandError) -> Outcome {
        if let planner { return try call.perform(try planner(call.words)) }
        guard let handler else { throw .syntax }
        return try handler(&call)
    }
}

extension CommandSpec {
    /// Returns the subcommand of a call.
    /// - Parameters:
    ///   - word: the second word.
    ///   - count: the number of words of the call.
    func subcommand(_ word: UnsafeRawBufferPointer, count: Int) throws(CommandError) -> CommandSpec {
        let name = ShortWord(word)
        guard let found = subcommands.first(where: { $0.word == name }) else {
            throw CommandError(
                "ERR unknown subcommand '", shown(word, 128), "'. Try \(self.name.uppercased()) HELP.")
        }
        guard found.metadata.accepts(argumentCount: count) else { throw .arity(found.name) }
        return found
    }

    func subcommand(named name: String) -> CommandSpec? {
        let word = ShortWord(name)
        return subcommands.first { $0.word == word }
    }

    /// Creates a handler for the subcommand HELP, which lists the subcommands in the catalog.
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

}
