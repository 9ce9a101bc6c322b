/// One command of a conformance script, and how its replies are compared.
struct ConformanceStep: CustomStringConvertible, Sendable {
    enum Comparison: Sendable {
        /// The replies consist of the same bytes.
        case exact
        /// The replies are arrays with the same elements in any order.
        case unordered
        /// The replies are integers that may differ by five seconds, because they were made at two instants.
        case near
    }

    let line: String
    let words: [[UInt8]]
    let comparison: Comparison
    var description: String { line }

    /// Parses a line: words separated by spaces, or in double quotes with the escapes `\n`, `\r`, `\"`, `\\` and
    /// `\xHH`. A leading `~` means unordered, a leading `@` means near.
    init(_ text: String) {
        line = text
        var rest = Array(text.utf8)[...]
        switch rest.first {
        case UInt8(ascii: "~"): comparison = .unordered
        case UInt8(ascii: "@"): comparison = .near
        default: comparison = .exact
        }
        if comparison != .exact { rest = rest.dropFirst() }
        var words: [[UInt8]] = []
        while let first = rest.first {
            if first == UInt8(ascii: " ") {
                rest = rest.dropFirst()
            } else if first == UInt8(ascii: "\"") {
                rest = rest.dropFirst()
                words.append(Self.quoted(&rest))
            } else {
                let word = rest.prefix { $0 != UInt8(ascii: " ") }
                words.append(Array(word))
                rest = rest.dropFirst(word.count)
            }
        }
        self.words = words
    }

    /// The bytes up to the closing quote.
    private static func quoted(_ rest: inout ArraySlice<UInt8>) -> [UInt8] {
        var word: [UInt8] = []
        while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
            guard byte == UInt8(ascii: "\\"), let escaped = rest.popFirst() else {
                word.append(byte)
                continue
            }
            switch escaped {
            case UInt8(ascii: "n"): word.append(0x0A)
            case UInt8(ascii: "r"): word.append(0x0D)
            case UInt8(ascii: "x"):
                word.append(UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) ?? 0)
                rest = rest.dropFirst(2)
            default: word.append(escaped)
            }
        }
        return word
    }
}

/// The commands of Redis that larderd supports, with the options and the errors of each. Both servers start empty.
enum ConformanceScript {
    static let steps: [ConformanceStep] = [
        connection,
        strings,
        values,
        bits,
        expiry,
        keys,
        moving,
        dumps,
        absentTypes,
        transactions,
        scripting,
        functions,
        server,
        administration,
    ]
    .flatMap { $0.split(separator: "\n") }
    .filter { !$0.hasPrefix("#") }.map { ConformanceStep(String($0)) }

    private static let connection = #"""
        PING
        ping hello
        PING "a b\x00\xff"
        PING a b
        ECHO hello
        ECHO ""
        ECHO
        ECHO a b
        QUITE
        nosuch a b c
        "" a
        "a\r\nb" "c\nd"
        "a\x00b" "c\x00d" e
        "\xff\xfe" "\xfd"
        0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789ABCDEF 0123456789012345678901234567890123456789012345678901234567890123456789 0123456789012345678901234567890123456789012345678901234567890123456789 x
        HELLO x
        HELLO 1
        HELLO 4
        HELLO 99999999999999999999
        HELLO 2 BAD
        HELLO 2 SETNAME
        HELLO 2 SETNAME "a b"
        HELLO 2 AUTH default
        HELLO 2 AUTH nobody secret
        HELLO 3 AUTH nobody secret SETNAME x
        CLIENT
        CLIENT BAD
        CLIENT ID x
        CLIENT GETNAME
        CLIENT GETNAME x
        CLIENT SETNAME
        CLIENT SETNAME "a b"
        CLIENT SETNAME "a\nb"
        CLIENT SETNAME "caf\xc3\xa9"
        CLIENT SETNAME me
        client getname
        CLIENT SETNAME ""
        CLIENT GETNAME
        SELECT
        SELECT 1 2
        SELECT 16
        SELECT -1
        SELECT 2147483647
        SELECT 2147483648
        SELECT -2147483649
        SELECT 9223372036854775807
        SELECT 1
        SELECT 15
        SELECT 0
        """#
        + "\n"

    private static let strings = #"""
        GET k
        GET
        GET k k
        SET k
        SET k v
        GET k
        set K V
        Get K
        SET "" "empty key"
        GET ""
        SET bin "\x00\x01\r\n\xff"
        GET bin
        STRLEN bin
        STRLEN nothing
        STRLEN
        SET empty ""
        GET empty
        STRLEN empty
        SET k v NX
        SET new v NX
        SET k v2 XX
        SET nothing v XX
        GET nothing
        SET k v3 GET
        SET nothing2 v GET
        SET k v4 NX GET
        SET nothing3 v XX GET
        GET nothing3
        GET k
        SET k v NX XX
        SET k v XX NX
        SET k v BAD
        SET k v EX
        SET k v EX abc
        SET k v EX 1.5
        SET k v EX ""
        SET k v EX " 1"
        SET k v EX +1
        SET k v EX 01
        SET k v EX 0
        SET k v EX -1
        SET k v PX 0
        SET k v PXAT 0
        SET k v EXAT -5
        SET k v EX 9223372036854775807
        SET k v EX 9223372036854775808
        SET k v EX 9223372036854775
        SET k v EX 9223372036854774
        SET k v PX 9223372036854775807
        SET k v EXAT 9223372036854776
        SET k v PXAT 9223372036854775807
        PEXPIRETIME k
        SET k v EX abc BAD
        SET k v EX 0 BAD
        SET k v BAD EX abc
        SET k v EX 10 PX 10
        SET k v EX 10 EX 20
        TTL k
        SET k v EX abc EX 20
        SET k v KEEPTTL EX 10
        SET k v EX 10 KEEPTTL
        SET k v KEEPTTL
        TTL k
        SET k v KEEPTTL KEEPTTL GET GET NX
        SET k v NX NX
        SET k v XX XX
        SET k v ex 100 xx get
        TTL k
        SET k v PERSIST
        SET k v EXAT 1
        GET k
        SET k v PXAT 1 GET
        SET k v
        SET k w PXAT 1 GET
        EXISTS k
        SET k w NX PXAT 1
        EXISTS k
        SET k w XX EX 100
        SET k v EXAT 4102444800
        EXPIRETIME k
        PEXPIRETIME k
        SET k v PXAT 4102444800499
        EXPIRETIME k
        SET k v PXAT 4102444800500
        EXPIRETIME k
        SET k v
        TTL k
        PTTL k
        EXPIRETIME k
        PEXPIRETIME k
        GETDEL k
        GETDEL k
        GETDEL
        MSET
        MSET a
        MSET a 1 b
        MSET a 1
        MSET a 1 b 2 a 3
        MGET a b c a
        MGET
        MGET nothing
        MGET a
        """#
        + "\n"

    private static let expiry = #"""
        SET k v
        EXPIRE
        EXPIRE k
        EXPIRE k abc
        EXPIRE nothing abc
        EXPIRE nothing 100
        EXPIRE k 100 BAD
        EXPIRE k abc BAD
        EXPIRE k 100 NX XX
        EXPIRE k 100 NX GT
        EXPIRE k 100 NX LT
        EXPIRE k 100 GT LT
        EXPIRE k 100 XX GT LT
        EXPIRE k abc GT LT
        EXPIRE k 100 NX NX
        TTL k
        EXPIRE k 50 NX
        EXPIRE k 50 XX
        TTL k
        EXPIRE k 40 GT
        EXPIRE k 60 gt
        EXPIRE k 70 LT
        EXPIRE k 30 LT
        EXPIRE k 200 XX GT
        EXPIRE k 100 XX LT
        @PTTL k
        @PEXPIRETIME k
        PERSIST k
        PERSIST k
        PERSIST nothing
        PERSIST
        EXPIRE k 100 XX
        EXPIRE k 100 GT
        EXPIRE k 100 LT
        TTL k
        PEXPIRE k 100000
        TTL k
        EXPIREAT k 4102444800
        EXPIRETIME k
        PEXPIREAT k 4102444800001
        PEXPIRETIME k
        PEXPIREAT k 4102444800000 GT
        PEXPIREAT k 4102444800002 GT
        PEXPIRETIME k
        EXPIRE k 9223372036854775807
        EXPIRE k -9223372036854775808
        EXPIRE k 9223372036854775808
        PEXPIRE k 9223372036854775807
        EXPIREAT k 9223372036854775807
        EXPIREAT k 9223372036854776
        PEXPIREAT k 9223372036854775807
        PEXPIRETIME k
        EXPIRETIME k
        EXPIREAT nothing 9223372036854775807
        EXPIRE k -1
        EXISTS k
        SET k v
        EXPIRE k 0
        EXISTS k
        SET k v
        PEXPIREAT k 1
        GET k
        SET k v
        PEXPIREAT k -9223372036854775808
        GET k
        SET k v EX 100
        EXPIRE k -1 GT
        EXISTS k
        EXPIRE k -1 NX
        EXISTS k
        EXPIRE k -1 LT
        EXISTS k
        TTL nothing
        PTTL nothing
        EXPIRETIME nothing
        PEXPIRETIME nothing
        TTL
        TTL a b
        PTTL
        EXPIRETIME
        PEXPIRETIME a b
        """#
        + "\n"

    private static let keys = #"""
        FLUSHALL
        DBSIZE
        DBSIZE x
        MSET a 1 b 2 c 3
        DBSIZE
        DEL
        DEL nothing
        DEL a a nothing
        UNLINK b c b
        UNLINK
        DBSIZE
        EXISTS
        MSET user:1 a user:2 b user:10 c other d
        EXISTS user:1 user:1 nothing other
        TYPE user:1
        TYPE nothing
        TYPE
        ~KEYS *
        ~KEYS user:*
        ~KEYS user:?
        KEYS user:1
        ~KEYS user:[12]
        ~KEYS [^u]*
        ~KEYS *:1*
        KEYS nothing
        KEYS
        KEYS a b
        SCAN
        SCAN abc
        SCAN 0 BAD
        SCAN 0 COUNT
        SCAN 0 COUNT 0
        SCAN 0 COUNT -1
        SCAN 0 COUNT abc
        SCAN 0 MATCH
        SCAN 0 TYPE
        SCAN 99999999999999999999
        SCAN 0 COUNT 1000 MATCH user:1
        SCAN 0 COUNT 1000 MATCH user:1 TYPE string
        SCAN 0 COUNT 1000 TYPE list
        SCAN 0 match other count 1000
        SELECT 3
        DBSIZE
        SET three 3
        DBSIZE
        SELECT 0
        EXISTS three
        FLUSHDB BAD
        FLUSHDB ASYNC SYNC
        FLUSHDB ASYNC
        DBSIZE
        SELECT 3
        DBSIZE
        FLUSHALL SYNC
        DBSIZE
        SELECT 0
        FLUSHALL BAD
        FLUSHALL a b
        """#
        + "\n"

    private static let server = #"""
        COMMAND COUNT x
        COMMAND BAD
        COMMAND BAD x
        COMMAND INFO nosuch
        COMMAND INFO nosuch nosuch
        COMMAND DOCS nosuch
        INFO nosuch
        SHUTDOWN BAD
        SHUTDOWN SAVE BAD
        """#
}
