import LarderCommandCatalog
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
        connectionCommands, clientCommands, commandCommands, serverCommands, administrationCommands, accessCommands,
        configCommands, larderCommands, entryCommands, changesCommands,
    ])

    static let planners: Planners = merge([
        stringPlanners, storingPlanners, valuePartPlanners, numberPlanners, bitPlanners, bitFieldPlanners, lcsPlanners,
        conditionalPlanners, keyPlanners, movingPlanners, dumpPlanners, objectPlanners, expiryPlanners, larderPlanners,
        entryPlanners, changesPlanners, fetchingPlanners, absentTypePlanners,
    ])

    private static func merge<Function>(
        _ parts: [[CommandMetadata: Function]]
    ) -> [CommandMetadata: Function] {
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
    static func find(_ name: UnsafeRawBufferPointer, _ current: inout CurrentCommand) -> CommandMetadata? {
        let word = ShortWord(name)
        if !current.isNamed(word) {
            guard let found = find(word, name) else { return nil }
            current.note(found.metadata, found.planner, word)
        }
        return current.row
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
