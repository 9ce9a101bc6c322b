import LarderClient

extension Verb {
    static let subscribe: Verb = Verb(
        name: "subscribe", synopsis: "CHANNEL… [--pattern]",
        summary: "show the messages of channels as they arrive",
        details: """
            One line per message: the channel, a tab, the message. Ends with Ctrl-C, or when the daemon stops (exit code
            3); it does not reconnect, because messages would be missing. With --json: objects of channel, pattern (if
            one has matched) and message.
            """,
        options: [
            OptionSpec(
                name: "--pattern", value: nil,
                summary: "each CHANNEL is a pattern: * matches any characters, ? one, [a-c] one of these")
        ],
        argumentCount: 1...Int.max
    ) { arguments, context in
        let output = context.output
        let client = try context.connect()
        try client.messages(of: arguments.words, arePatterns: arguments.options["--pattern"] != nil) { message in
            if context.options.json {
                output.json(
                    .present(["channel": message.channel, "pattern": message.pattern, "message": message.payload]))
            } else {
                output.oneLine(message.channel, message.payload)
            }
            try output.flush()
        }
    }
}
