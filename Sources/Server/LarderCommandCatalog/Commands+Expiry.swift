/// Commands about the lifetimes of entries.
extension CommandMetadata {
    static let expiry: [CommandMetadata] = [
        .expire, .pexpire, .expireat, .pexpireat, .ttl, .pttl, .expiretime, .pexpiretime, .persist,
    ]

    package static let expire = CommandMetadata(
        "expire", arity: -3, [.write, .fast], keys: .one, group: .generic, since: "1.0.0",
        syntax: "key seconds [NX | XX | GT | LT]",
        summary: "Gives an entry its own deadline, a number of seconds from now.",
        reply: "1; 0 when there is no fresh entry or the condition is not met", access: ["RW update"], tag: .expire)

    package static let pexpire = CommandMetadata(
        "pexpire", arity: -3, [.write, .fast], keys: .one, group: .generic, since: "2.6.0",
        syntax: "key milliseconds [NX | XX | GT | LT]",
        summary: "Gives an entry its own deadline, a number of milliseconds from now.",
        reply: "1; 0 when there is no fresh entry or the condition is not met", access: ["RW update"], tag: .expire)

    package static let expireat = CommandMetadata(
        "expireat", arity: -3, [.write, .fast], keys: .one, group: .generic, since: "1.2.0",
        syntax: "key unix-time-seconds [NX | XX | GT | LT]",
        summary: "Gives an entry its own deadline, in seconds since 1970.",
        reply: "1; 0 when there is no fresh entry or the condition is not met", access: ["RW update"], tag: .expire)

    package static let pexpireat = CommandMetadata(
        "pexpireat", arity: -3, [.write, .fast], keys: .one, group: .generic, since: "2.6.0",
        syntax: "key unix-time-milliseconds [NX | XX | GT | LT]",
        summary: "Gives an entry its own deadline, in milliseconds since 1970.",
        reply: "1; 0 when there is no fresh entry or the condition is not met", access: ["RW update"], tag: .expire)

    package static let ttl = CommandMetadata(
        "ttl", arity: 2, [.readonly, .fast], keys: .one, group: .generic, since: "1.0.0", syntax: "key",
        summary: "Returns how long an entry stays fresh, in seconds.",
        reply: "integer; -1 when it does not expire, -2 when there is no fresh entry", tips: [.output])

    package static let pttl = CommandMetadata(
        "pttl", arity: 2, [.readonly, .fast], keys: .one, group: .generic, since: "2.6.0", syntax: "key",
        summary: "Returns how long an entry stays fresh, in milliseconds.",
        reply: "integer; -1 when it does not expire, -2 when there is no fresh entry", tips: [.output])

    package static let expiretime = CommandMetadata(
        "expiretime", arity: 2, [.readonly, .fast], keys: .one, group: .generic, since: "7.0.0", syntax: "key",
        summary: "Returns an entry's deadline in seconds since 1970.",
        reply: "integer; -1 when it does not expire, -2 when there is no fresh entry")

    package static let pexpiretime = CommandMetadata(
        "pexpiretime", arity: 2, [.readonly, .fast], keys: .one, group: .generic, since: "7.0.0", syntax: "key",
        summary: "Returns an entry's deadline in milliseconds since 1970.",
        reply: "integer; -1 when it does not expire, -2 when there is no fresh entry")

    package static let persist = CommandMetadata(
        "persist", arity: 2, [.write, .fast], keys: .one, group: .generic, since: "2.2.0", syntax: "key",
        summary: "Makes an entry never expire, regardless of the database's policy.",
        reply: "1; 0 when there is no fresh entry or it has no deadline", access: ["RW update"], tag: .persist)
}
