import LarderEngine
import LarderRESP

/// The options of a FETCH command. Times are in milliseconds.
struct FetchWords {
    private(set) var maxAge: Int64?
    private(set) var wait: Int64 = 0
    private(set) var lease: Int64?
    private(set) var version: UInt64?

    init(_ words: some CommandWords) throws(CommandError) {
        var hasWait = false
        for index in stride(from: 2, to: words.count, by: 2) {
            guard index + 1 < words.count else { throw .syntax }
            let (word, value) = (words.bytes(index), words.bytes(index + 1))
            if equalsIgnoringCase(word, "WAIT"), !hasWait {
                hasWait = true
                wait = try Self.milliseconds(value, "WAIT", from: 0)
            } else if equalsIgnoringCase(word, "MAXAGE"), maxAge == nil {
                maxAge = try Self.milliseconds(value, "MAXAGE", from: 0)
            } else if equalsIgnoringCase(word, "LEASE"), lease == nil {
                lease = try Self.milliseconds(value, "LEASE", from: 1)
            } else if equalsIgnoringCase(word, "IFNOT"), version == nil {
                guard let digest = Digest.parse(value) else {
                    throw CommandError("ERR the version must be 16 hexadecimal digits, as returned by FETCH and DIGEST")
                }
                version = digest
            } else {
                throw .syntax
            }
        }
    }

    /// Parses a number of milliseconds, from `least` to one day.
    static func milliseconds(
        _ bytes: UnsafeRawBufferPointer, _ word: String, from least: Int64
    ) throws(CommandError) -> Int64 {
        let most = LeaseContext.longestMilliseconds
        guard let value = parseInteger(bytes), (least...most).contains(value) else {
            throw CommandError("ERR \(word) takes milliseconds, from \(least) to \(most)")
        }
        return value
    }
}

/// The states of the value in a reply to FETCH.
enum ServedState {
    case fresh, stale, lead

    /// The beginning of the reply in RESP: the header of an array of 6 elements, and the state as its first element.
    var header: StaticString {
        switch self {
        case .fresh: "*6\r\n$5\r\nfresh\r\n"
        case .stale: "*6\r\n$5\r\nstale\r\n"
        case .lead: "*6\r\n$4\r\nlead\r\n"
        }
    }
}

extension ReplyBuffer {
    /// Writes a reply to FETCH that contains a value.
    /// - Parameters:
    ///   - known: the version of the value that the client already has. A fresh value with this version is not sent
    ///     again.
    ///   - deadline: when the value expires, in milliseconds since 1970; nil for never.
    mutating func fetched(
        _ state: ServedState, token: UInt64? = nil, _ payload: UnsafeRawBufferPointer, unless known: UInt64?,
        storedAt: Int64, deadline: Int64?, now: Int64
    ) {
        let version = Digest.of(payload)
        if version == known, state == .fresh {
            raw("*6\r\n$4\r\nsame\r\n")
            null()
        } else {
            raw(state.header)
            bulk(payload)
        }
        if let token { bulk("\(token)") } else { null() }
        Digest.withText(version) { bulk($0) }
        integer(max(0, now - storedAt))
        integer(deadline.map { max(0, $0 - now) } ?? -1)
    }
}
