import LarderClient

extension Verb {
    static let origin = Verb(
        name: "origin",
        synopsis:
            "[NAME [URL [THROUGH|AROUND|BEHIND] [STALE] [USER name] [PASSWORDFILE path] [DISCARD] | none [DISCARD]]]",
        summary: "show or change the server behind a database",
        details: """
            NAME is the database; without it the one of --database. URL is redis://host:port[/db],
            redis+cluster://host:port,host:port or unix:///path[?db=n], rediss:// and rediss+cluster:// with TLS.
            From then on what is not known here is asked there, once for all clients, and kept for as long as it says that
            nothing has changed; what is written goes there. THROUGH (the default) keeps what was written, AROUND forgets
            it, BEHIND acknowledges it here and brings it there later: outbox is how many keys wait. While some do, another
            origin or none is refused unless DISCARD forgets what waits. With STALE, GET and the like are answered within an entry's grace while the origin cannot be asked.
            The password stands in a file, which the daemon reads. none takes the origin away; what is here stays.
            Prints what ORIGIN replies, or OK after a change. With --json an object.
            """,
        argumentCount: 0...10
    ) { arguments, context in
        let client = try context.connect()
        if let name = arguments.words.first { try client.select(String(decoding: name, as: UTF8.self)) }
        let change = arguments.words.dropFirst()
        guard change.isEmpty else {
            try client.setOrigin(Array(change))
            if context.options.json {
                context.output.json(.object([("ok", .bool(true))]))
            } else {
                context.output.line("OK")
            }
            return .done
        }
        let fields = try client.originInfo()
        if context.options.json {
            context.output.json(
                .object(fields.map { (name: $0, value: Int64($1).map { .integer($0) } ?? .text($1)) }))
        } else if fields.first?.1.isEmpty ?? true {
            context.output.line("none")
        } else {
            for (name, value) in fields { context.output.line("\(name): \(value)") }
        }
        return .done
    }
}
