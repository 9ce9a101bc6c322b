import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// The table of all commands: each row of the catalog, and the function that runs the command. To add a command, add
/// its row to the catalog. Write a planner if the command only uses the entries of keys in its arguments, otherwise a
/// handler. Add the function to a dictionary of this table.
package enum CommandTable {
    typealias Handlers = [CommandMetadata: CommandSpec.Handler]
    typealias Planners = [CommandMetadata: EntryPlan.Planner]

    /// All commands without their subcommands, in the order of the catalog.
    package static let all: [CommandSpec] = CommandMetadata.all.map { CommandSpec($0, handlers, planners) }

    static let handlers: Handlers = merge([
        keyCommands, movingCommands, objectCommands, transactionCommands, scriptingCommands, pubsubCommands,
        connectionCommands, clientCommands, trackingCommands, commandCommands, serverCommands, administrationCommands,
        accessCommands,
        larderCommands, entryCommands, changesCommands, queryCommands,
    ])

    static let planners: Planners = merge([
        stringPlanners, valuePartPlanners, numberPlanners, boundedNumberPlanners, bitPlanners, bitFieldPlanners,
        lcsPlanners, keyPlanners, movingPlanners, dumpPlanners, objectPlanners, larderPlanners,
        entryPlanners, changesPlanners, absentTypePlanners, editPlanners, jsonReadPlanners, jsonChangePlanners,
    ])

    private static func merge<Function>(_ parts: [[CommandMetadata: Function]]) -> [CommandMetadata: Function] {
        parts.reduce(into: [:]) { all, part in
            all.merge(part) { _, _ in preconditionFailure("a command is implemented twice") }
        }
    }

    /// All commands and subcommands. The subcommands of a command follow it.
    package static let withSubcommands: [CommandSpec] = all.flatMap { [$0] + $0.subcommands }

    private static let byName: [ShortWord: CommandSpec] = Dictionary(
        uniqueKeysWithValues: all.filter { $0.word != .other }.map { ($0.word, $0) })

    /// The commands and subcommands, by ``CommandMetadata/number``.
    private static let byNumber: [CommandSpec?] = {
        var specs = [CommandSpec?](repeating: nil, count: CommandMetadata.numberMax)
        for spec in withSubcommands { specs[spec.metadata.number] = spec }
        return specs
    }()

    /// Returns the command of a row in the catalog.
    static func spec(_ row: CommandMetadata) -> CommandSpec {
        guard let spec = byNumber[row.number] else { preconditionFailure("\(row.name) is not in CommandMetadata.all") }
        return spec
    }

    /// Finds a command by its name, ignoring the case of ASCII letters.
    package static func find(_ name: UnsafeRawBufferPointer) -> CommandSpec? { find(ShortWord(name), name) }

    /// Finds a command by its name.
    /// - Parameter word: the same name, encoded as a number.
    static func find(_ word: ShortWord, _ name: UnsafeRawBufferPointer) -> CommandSpec? {
        word == .other ? CommandMetadata.named(long: name).map { spec($0) } : byName[word]
    }

    /// Finds the command with a name, and makes it a session's current command. Searches only if the name is another.
    @inline(__always)
    static func find(_ name: UnsafeRawBufferPointer, _ current: inout CurrentCommand) -> Unmanaged<CommandPlanner>? {
        let word = ShortWord(name)
        if !current.isNamed(word) {
            guard let found = find(word, name) else { return nil }
            current.note(found.planner, word)
        }
        return current.planner
    }

    package static func find(_ name: String) -> CommandSpec? {
        var name = name
        return name.withUTF8 { find(UnsafeRawBufferPointer($0)) }
    }

    /// Finds a command or a subcommand by a name such as `config` or `config|get`.
    static func findWithSubcommand(_ name: String) -> CommandSpec? {
        let parts = name.split(separator: "|", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let spec = find(String(first)) else { return nil }
        return parts.count == 2 ? spec.subcommand(named: String(parts[1])) : spec
    }
}

/// A command: its metadata, and the function that runs it.
///
/// A class, so that passing a command to a function copies only a reference.
package final class CommandSpec: Sendable {
    package let metadata: CommandMetadata
    /// Plans what the command does with entries, unless the command does more than that, and therefore has a handler.
    let planner: CommandPlanner
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
        (planner, handler) = (CommandPlanner(row, planners[row]), handlers[row])
        if row.runsByItself {
            precondition(planner.hasFunction == (handler == nil), "\(row.name) needs either a planner or a handler")
        }
    }

    func run(_ call: inout Call) throws(CommandError) -> Outcome {
        if let plan = try planner.plan(call.words) { return try call.perform(plan) }
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
