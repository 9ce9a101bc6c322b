// The daemon's commands, from the daemon's own table.

/// What the help says of a command of the daemon.
struct CommandRow: Sendable {
    let name: String
    /// How many words it has, its name included; negative for at least so many.
    let arity: Int
    let group: String
    let since: String
    let summary: String
    let syntax: String
    let complexity: String
}

enum CommandReference {
    static let all: [CommandRow] = [
        CommandRow(
            name: "SET", arity: -3, group: "string", since: "0.1", summary: "stub", syntax: "SET key value",
            complexity: "O(1)")
    ]

    /// The command of that name, in upper or lower case.
    static func row(named name: String) -> CommandRow? {
        let name = name.uppercased()
        return all.first { $0.name.uppercased() == name }
    }
}
