import LarderClient

extension Verb {
    static let meta = Verb(
        "meta", "KEY", "show an entry's times, policy, size and codec",
        details: """
            Prints when the entry was stored, its age, when it expires and by which rule, its grace, its size, and its
            codec. With --json, all times are in milliseconds, absolute times since 1970, and null means never.
            Also shows entries within their grace: their state is stale, or unverified if the database's origin is not
            available. Exits with 1 and prints nothing if there is no entry.
            """,
        argumentCount: 1...1
    ) { arguments, context in
        let key = arguments.words[0]
        let info = try context.options.connect().info(forKey: key)
        context.show(metaJSON(key, info)) { output in
            guard let info else { return }
            for (name, text) in metaLines(info) { output.line(name.padded(11) + text) }
        }
        return info == nil ? .notFound : .done
    }

    private static func metaLines(_ info: EntryInfo) -> [(name: String, text: String)] {
        let rule =
            switch info.rule {
            case .governed: "its database's policy, \(info.databasePolicy)"
            case .own: "its own"
            case .ownNever: "its own: it never expires"
            }
        return [
            ("stored at", TimeText.instant(info.storedAtMilliseconds)),
            ("age", TimeText.seconds(info.ageMilliseconds) + " s"),
            ("deadline", info.deadlineMilliseconds.map { TimeText.instant($0) } ?? "never"),
            ("ttl", info.timeToLiveMilliseconds.map { TimeText.seconds($0) + " s" } ?? "never"),
            ("rule", rule),
            ("grace", info.graceMilliseconds > 0 ? TimeText.seconds(info.graceMilliseconds) + " s" : "none"),
            ("size", counted(info.byteCount, "byte")),
            ("codec", info.codec.description),
            ("state", state(info)),
        ]
    }

    private static func metaJSON(_ key: [UInt8], _ info: EntryInfo?) -> JSONText {
        guard let info else { return ["key": key, "found": false] }
        return [
            "key": key, "found": true, "stored-at": info.storedAtMilliseconds, "age": info.ageMilliseconds,
            "deadline": info.deadlineMilliseconds, "ttl": info.timeToLiveMilliseconds, "rule": info.rule.name,
            "policy": info.databasePolicy.description, "grace": info.graceMilliseconds, "size": info.byteCount,
            "codec": info.codec.description, "state": state(info),
        ]
    }

    private static func state(_ info: EntryInfo) -> String {
        info.isExpired ? "stale" : info.isUnverified ? "unverified" : "fresh"
    }

    static let tags = Verb(
        "tags", "KEY", "print an entry's tags",
        details: """
            Prints one tag per line, in the order given. With --json: {"key":…,"found":…,"tags":[…]}.
            Exits with 1 if the key has no fresh entry.
            """,
        argumentCount: 1...1
    ) { arguments, context in
        let key = arguments.words[0]
        let tags = try context.options.connect().tagBytes(forKey: key)
        context.show(["key": key, "found": tags != nil, "tags": tags ?? []]) { output in
            for tag in tags ?? [] { output.oneLine(tag) }
        }
        return tags == nil ? .notFound : .done
    }
}
