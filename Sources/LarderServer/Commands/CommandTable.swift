import RESP

/// Every command, in one table. Adding one is a row and a function.
package enum CommandTable {
    /// In the order of their groups, as help and documentation show them.
    package static let all: [CommandSpec] =
        stringCommands + storingCommands + valuePartCommands + numberCommands + bitCommands
        + bitFieldCommands + lcsCommands + conditionalCommands + keyCommands + movingCommands
        + dumpCommands + objectCommands + expiryCommands + transactionCommands + pubsubCommands + connectionCommands
        + clientCommands + commandCommands + serverCommands + administrationCommands + configCommands + larderCommands

    /// The groups of HELP where a command's subcommands are not of the group `server`.
    static let helpGroups = ["client": "connection", "object": "generic", "pubsub": "pubsub"]

    /// With all subcommands, each behind its command.
    package static let withSubcommands: [CommandSpec] = all.flatMap { [$0] + $0.subcommands }

    private static let byName: [ShortWord: CommandSpec] = Dictionary(
        uniqueKeysWithValues: all.map { ($0.word, $0) })

    /// Finds a command by its name in any case of ASCII letters.
    package static func find(_ name: UnsafeRawBufferPointer) -> CommandSpec? { find(ShortWord(name)) }

    static func find(_ word: ShortWord) -> CommandSpec? { byName[word] }

    package static func find(_ name: String) -> CommandSpec? {
        var name = name
        return name.withUTF8 { find(UnsafeRawBufferPointer($0)) }
    }
}
