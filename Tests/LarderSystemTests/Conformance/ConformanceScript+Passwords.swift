extension ConformanceScript {
    /// Steps for servers whose password is `sesame`.
    static let passwords: [ConformanceStep] = #"""
        PING
        GET a
        GET
        NOSUCH
        HELLO
        HELLO 3
        HELLO 2 SETNAME x
        HELLO x
        HELLO 9
        HELLO 3 BAD
        COMMAND COUNT
        CLIENT ID
        CLIENT BAD
        MULTI
        EXEC
        EXEC x
        DISCARD
        WATCH a
        SUBSCRIBE x
        RESET
        AUTH
        AUTH bad
        AUTH default bad
        AUTH nobody sesame
        AUTH a b c
        GET a
        AUTH sesame
        GET a
        RESET
        GET a
        AUTH default sesame
        GET a
        AUTH bad
        GET a
        MULTI
        AUTH bad
        GET a
        EXEC
        MULTI
        RESET
        EXEC
        AUTH sesame
        HELLO 3 AUTH default bad
        GET a
        EXEC
        CLIENT GETNAME
        """#
        .split(separator: "\n").map { ConformanceStep(String($0)) }
}
