import LarderCommandCatalog
import LarderServices

/// Generates the manual page larder-protocol(7) from the command table.
enum ProtocolManual {
    static var text: String {
        // Each group of commands is a section.
        ManualPage.page(
            "larder-protocol", 7, "the commands that larderd answers",
            [
                "DESCRIPTION": description + groups.map(section).joined(),
                "SEE ALSO": ".BR larderctl (1),\n.BR larderd (8)",
            ])
    }

    private static let description = """
        .BR larderd (8)
        listens on a Unix\\-domain socket and speaks RESP, the protocol of Redis. A request is a line of words (an inline command),
        or an array of bulk strings, which is what client libraries send. Replies are those of RESP2, and of RESP3 after
        .BR "HELLO 3" .
        Requests may be pipelined, and replies come in the order of the requests. A reply is sent only after
        everything that its command wrote or read is committed with the daemon's durability.
        .PP
        A command that Redis has behaves as in Redis for string values. Values are bytes; keys are bytes, compared byte by byte.
        Entries expire after the interval of their database's policy, unless they have a lifetime of their own.
        .PP
        .nf
        $ nc \\-U /run/larder/larder.sock
        SET greeting "good morning" POLICY high
        +OK
        GET greeting
        $12
        good morning
        .fi

        """

    /// The commands by group, in the table's order.
    private static var groups: [(name: String, rows: [CommandMetadata])] {
        var groups: [(name: String, rows: [CommandMetadata])] = []
        for row in CommandMetadata.withSubcommands {
            if let index = groups.firstIndex(where: { $0.name == row.group.rawValue }) {
                groups[index].rows.append(row)
            } else {
                groups.append((row.group.rawValue, [row]))
            }
        }
        return groups
    }

    private static func section(_ name: String, _ rows: [CommandMetadata]) -> String {
        ".SH COMMANDS: \(name.uppercased())\n"
            + rows.map { row in
                let call =
                    row.name.uppercased().replacing("|", with: " ") + (row.syntax.isEmpty ? "" : " " + row.syntax)
                return ManualPage.item(call, [row.summary, "Answer: \(row.reply). Cost: \(row.complexity)."])
            }.joined()
    }
}
