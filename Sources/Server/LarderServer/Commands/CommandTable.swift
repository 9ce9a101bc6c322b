import LarderCommandCatalog
import LarderRESP

/// The table of all commands: the catalog's rows with their handlers. To add a command, add a row to the catalog, a
/// function, and the line here that connects them.
package enum CommandTable {
    typealias Handlers = [CommandMetadata: CommandSpec.Handler]

    /// In the order of the catalog.
    package static let all: [CommandSpec] = CommandMetadata.all.map { CommandSpec($0, handlers) }

    static let handlers: Handlers = [
        stringCommands, storingCommands, valuePartCommands, numberCommands, bitCommands, bitFieldCommands, lcsCommands,
        conditionalCommands, keyCommands, movingCommands, dumpCommands, objectCommands, expiryCommands,
        transactionCommands, scriptingCommands, pubsubCommands, connectionCommands, clientCommands, commandCommands,
        serverCommands,
        administrationCommands, accessCommands, configCommands, larderCommands, entryCommands, changesCommands,
        fetchingCommands, absentTypeCommands,
    ].reduce(into: [:]) { $0.merge($1) { _, _ in preconditionFailure("a command has two handlers") } }

    /// Including all subcommands, each after its command.
    package static let withSubcommands: [CommandSpec] = all.flatMap { [$0] + $0.subcommands }

    private static let byName: [ShortWord: CommandSpec] = Dictionary(
        uniqueKeysWithValues: all.filter { $0.word != .other }.map { ($0.word, $0) })

    /// Indexed by the numbers of their rows.
    private static let byNumber: [CommandSpec?] = {
        var specs = [CommandSpec?](repeating: nil, count: CommandMetadata.numberMax)
        for spec in withSubcommands { specs[spec.metadata.number] = spec }
        return specs
    }()

    /// The command of a row.
    static func spec(_ row: CommandMetadata) -> CommandSpec {
        guard let spec = byNumber[row.number] else { preconditionFailure("\(row.name) is not in a list of rows") }
        return spec
    }

    /// Finds a command by its name in any case of ASCII letters.
    package static func find(_ name: UnsafeRawBufferPointer) -> CommandSpec? { find(ShortWord(name), name) }

    /// - Parameter word: the name, encoded as a number.
    static func find(_ word: ShortWord, _ name: UnsafeRawBufferPointer) -> CommandSpec? {
        word == .other ? CommandMetadata.named(long: name).map { spec($0) } : byName[word]
    }

    package static func find(_ name: String) -> CommandSpec? {
        var name = name
        return name.withUTF8 { find(UnsafeRawBufferPointer($0)) }
    }

    /// Finds `command` or `command|subcommand`.
    static func findWithSubcommand(_ name: String) -> CommandSpec? {
        let parts = name.split(separator: "|", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let spec = find(String(first)) else { return nil }
        return parts.count == 2 ? spec.subcommand(named: String(parts[1])) : spec
    }
}
