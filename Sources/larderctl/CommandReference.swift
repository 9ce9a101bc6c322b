// The daemon's commands, from the daemon's own table.

/// What the help says of a command of the daemon.
struct CommandRow: Sendable {
    /// In lower case.
    let name: String
    /// How many words it has, its name included; negative for at least so many.
    let arity: Int
    let group: String
    let since: String
    let complexity: String
    /// What stands behind the name.
    let syntax: String
    let summary: String
    /// What comes back.
    let reply: String
}

enum CommandReference {
    static let all: [CommandRow] = ["set", "get", "mget", "strlen", "expire", "command", "shutdown"].map {
        CommandRow(
            name: $0, arity: -2, group: "string", since: "1.0.0", complexity: "O(1)", syntax: "key", summary: "Does.",
            reply: "OK")
    }

    /// The command of that name, in upper or lower case.
    static func row(named name: String) -> CommandRow? {
        let name = name.lowercased()
        return all.first { $0.name == name }
    }
}
