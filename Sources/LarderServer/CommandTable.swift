/// Every command, in one table. Adding one is a row and a function.
package enum CommandTable {
    /// In the order of their groups, as help and documentation show them.
    package static let all: [CommandSpec] =
        stringCommands + keyCommands + expiryCommands + connectionCommands + serverCommands + larderCommands

    private static let byName: [String: CommandSpec] = Dictionary(
        uniqueKeysWithValues: all.map { ($0.name, $0) })

    /// Finds a command by its name in any case.
    package static func find(_ name: UnsafeRawBufferPointer) -> CommandSpec? {
        guard name.count <= 32 else { return nil }
        return byName[String(decoding: name, as: UTF8.self).lowercased()]
    }

    package static func find(_ name: String) -> CommandSpec? { byName[name.lowercased()] }
}
