import LarderClient

extension Verb {
    static let ping: Verb = Verb(
        name: "ping", synopsis: "",
        summary: "check whether the daemon is running",
        details: """
            Prints PONG; with --json: {"answer":"PONG"}. Exits with 3 if no daemon replies.
            """,
        argumentCount: 0...0
    ) { _, context in
        try context.connect().ping()
        context.show(["answer": "PONG"], text: "PONG")
        return .done
    }
}
