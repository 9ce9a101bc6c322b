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
        // ASCII only: Unicode has other letters whose lower case is one of a-z.
        let lower = name.map { $0 >= 0x41 && $0 <= 0x5A ? $0 + 0x20 : $0 }
        return byName[String(decoding: lower, as: UTF8.self)]
    }

    package static func find(_ name: String) -> CommandSpec? {
        var name = name
        return name.withUTF8 { find(UnsafeRawBufferPointer($0)) }
    }
}
