/// The protocol on a socket.
enum Dialect {
    /// RESP2.
    case resp
    /// memcached's text protocol.
    case memcached
    /// The null server's protocol: RESP after a greeting with the length of each request and of the reply.
    case null
}

/// The bytes of one kind of request, with the offsets of key and value. All requests of one kind have the same length:
/// keys have 16 bytes, and values have one size.
struct RequestTemplate {
    let bytes: [UInt8]
    /// The offset of the key's last digit.
    let lastDigit: Int
    /// The offset of the value, if there is one.
    let value: Int?

    static func get(_ dialect: Dialect) -> RequestTemplate {
        switch dialect {
        case .resp, .null: RequestTemplate("*2\r\n$3\r\nGET\r\n$16\r\n", "\r\n")
        case .memcached: RequestTemplate("get ", "\r\n")
        }
    }

    static let fetch = RequestTemplate("*2\r\n$5\r\nFETCH\r\n$16\r\n", "\r\n")

    /// A call of a script that is already loaded in the server.
    static func script(_ script: BenchScript, valueBytes: Int) -> RequestTemplate {
        let head = "*\(script.hasValue ? 5 : 4)\r\n$7\r\nEVALSHA\r\n$40\r\n\(script.digest)\r\n$1\r\n1\r\n$16\r\n"
        guard script.hasValue else { return RequestTemplate(head, "\r\n") }
        return RequestTemplate(head, "\r\n$\(valueBytes)\r\n", valueBytes: valueBytes, "\r\n")
    }

    /// - Parameter words: added after the value; for RESP only.
    static func set(_ dialect: Dialect, _ kind: Load.Kind, words: [String] = []) -> RequestTemplate {
        let valueBytes = kind.valueBytes
        switch dialect {
        case .resp, .null:
            let words = words + (kind.lifetimeMilliseconds.map { ["PX", "\($0)"] } ?? [])
            return RequestTemplate(
                "*\(3 + words.count)\r\n$3\r\nSET\r\n$16\r\n", "\r\n$\(valueBytes)\r\n", valueBytes: valueBytes,
                "\r\n" + words.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined())
        case .memcached:
            let lifetime = kind.lifetimeSeconds ?? 0
            return RequestTemplate("set ", " 0 \(lifetime) \(valueBytes)\r\n", valueBytes: valueBytes, "\r\n")
        }
    }

    private init(_ head: String, _ middle: String, valueBytes: Int? = nil, _ tail: String = "") {
        let key = Keys.text(0)
        lastDigit = head.utf8.count + key.utf8.count - 1
        value = valueBytes == nil ? nil : (head + key + middle).utf8.count
        bytes = Array((head + key + middle).utf8) + [UInt8](repeating: 0x78, count: valueBytes ?? 0) + Array(tail.utf8)
    }

    /// Writes a request. `place` must have `bytes.count` bytes, and `key` must be below 10^12.
    @inline(__always)
    func write(key: Int, values: Values, to place: UnsafeMutableRawPointer) {
        bytes.withUnsafeBytes { place.copyMemory(from: $0.baseAddress.unsafelyUnwrapped, byteCount: $0.count) }
        var digit = place + lastDigit
        var rest = UInt64(key)
        while rest > 0 {
            let (quotient, remainder) = rest.quotientAndRemainder(dividingBy: 10)
            digit.storeBytes(of: 0x30 + UInt8(truncatingIfNeeded: remainder), as: UInt8.self)
            digit -= 1
            rest = quotient
        }
        if let value { values.copy(key, to: place + value) }
    }
}
