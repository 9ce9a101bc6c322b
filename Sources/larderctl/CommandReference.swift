// The daemon's commands, from the daemon's own table.

import LarderServer

enum CommandReference {
    /// All of them, by groups.
    static var all: [CommandSpec] { CommandTable.all }

    /// The command of that name, in upper or lower case.
    static func row(named name: String) -> CommandSpec? { CommandTable.find(name) }
}
