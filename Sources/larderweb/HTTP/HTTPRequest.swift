import LarderPlatform

/// The maximum number of connections, and the limits of each connection.
struct HTTPLimits: Sendable {
    var connections: UInt32 = 64
    var idleSeconds: UInt32 = 30
    /// The size of a request's head, including its first line.
    var headBytes = 16_384
    /// The number of parameters in a request's first line. libmicrohttpd has memory for some more.
    var parameters = 1_024
    var bodyBytes = 65_536
    /// A body without a stated length may exceed its limit by this many bytes, which are read and dropped: a
    /// response can be sent only after the whole body was read.
    var droppedBytes = 1 << 20
    var requestMilliseconds: Int64 = 30_000
    var answerMilliseconds: Int64 = 60_000
}

/// A request while it is received, and afterwards. Confined to its connection's thread.
final class HTTPRequest {
    /// A name with its value, which need not be text.
    typealias Field = (name: String, value: [UInt8])

    /// The target in the first line.
    let target: [UInt8]
    /// The connection's descriptor.
    let descriptor: Int32
    /// Empty until the whole head was received.
    var method = ""
    /// The path in the first line. It is not decoded, because no path of larderweb has a percent sign.
    var path = ""
    /// The decoded parameters in the first line.
    var query: [Field] = []
    /// The headers in the order of the request; names in lower case.
    var headers: [Field] = []
    var body: [UInt8] = []
    /// The number of body bytes received beyond the limit.
    var droppedBytes = 0
    /// Whether the connection is closed instead of reading the rest of the request.
    var isRefused = false

    init(target: [UInt8], descriptor: Int32) { (self.target, self.descriptor) = (target, descriptor) }

    /// Returns the value of a parameter; nil unless there is exactly one.
    func bytes(_ name: String) -> [UInt8]? { Self.value(name, query) }

    func text(_ name: String) -> String? { bytes(name).flatMap { String(validating: $0, as: UTF8.self) } }

    var database: String { text("database") ?? "0" }

    /// Returns the value of a header, given its lower-case name; nil unless there is exactly one.
    func header(_ name: String) -> String? { Self.value(name, headers).map { String(decoding: $0, as: UTF8.self) } }

    func hasHeader(_ name: String) -> Bool { headers.contains { $0.name == name } }

    private static func value(_ name: String, _ fields: [Field]) -> [UInt8]? {
        let values = fields.filter { $0.name == name }
        return values.count == 1 ? values[0].value : nil
    }

    /// Returns the value of a cookie; nil unless there is exactly one. Ignores quotes, because the cookies of other
    /// programs on this host may be malformed.
    func cookie(_ name: String) -> [UInt8]? {
        let pairs = headers.filter { $0.name == "cookie" }.flatMap { $0.value.split(separator: UInt8(ascii: ";")) }
        let start = Array("\(name)=".utf8)
        let values = pairs.map { $0.drop { $0 == 0x20 } }.filter { $0.starts(with: start) }
        return values.count == 1 ? Array(values[0].dropFirst(start.count)) : nil
    }

    /// Returns the value of a form that has only this field; nil if the body is not such a form.
    func form(_ name: String) -> [UInt8]? {
        let start = Array("\(name)=".utf8)
        guard body.starts(with: start) else { return nil }
        return PercentEncoding.decoded(body.dropFirst(start.count).map { $0 == UInt8(ascii: "+") ? 0x20 : $0 })
    }

    // MARK: Checks of the head

    /// Checks the head before it is used. An ambiguous head is refused, because a proxy in front of larderweb may parse
    /// it differently.
    /// - Returns: the response to an invalid request, after which the connection is closed; nil if the request is
    ///   valid.
    func refusal(_ limits: HTTPLimits) -> HTTPResponse? {
        let bytes = headers.reduce(target.count) { $0 + $1.name.utf8.count + $1.value.count + 4 }
        guard bytes <= limits.headBytes else {
            let status: UInt32 = target.count > limits.headBytes ? 414 : 431
            return .closing(status, "the request's head exceeds \(limits.headBytes) bytes")
        }
        guard headers.allSatisfy({ Self.isToken($0.name) && Self.isText($0.value) }) else {
            return .closing(400, "a header's name or value has invalid characters")
        }
        func values(_ name: String) -> [String] {
            headers.filter { $0.name == name }.map { String(decoding: $0.value, as: UTF8.self) }
        }
        guard values("host").count == 1 else { return .closing(400, "a request must have exactly one Host header") }
        let (lengths, codings) = (values("content-length"), values("transfer-encoding"))
        guard lengths.count + codings.count <= 1 else {
            return .closing(400, "a request must have at most one Content-Length or Transfer-Encoding")
        }
        guard codings.allSatisfy({ $0.lowercased() == "chunked" }) else {
            return .closing(501, "the only supported Transfer-Encoding is chunked")
        }
        guard let length = lengths.first else { return nil }
        guard !length.isEmpty, length.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return .closing(400, "Content-Length must be a number")
        }
        guard let number = Int(length), number <= limits.bodyBytes else { return .tooLong(limits) }
        return nil
    }

    /// Whether a header's name in lower case is a token as in RFC 9110, section 5.6.2.
    private static func isToken(_ name: String) -> Bool {
        !name.isEmpty
            && name.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte) || "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
    }

    private static func isText(_ value: [UInt8]) -> Bool { value.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 9 } }
}

extension HTTPResponse {
    static func tooLong(_ limits: HTTPLimits) -> HTTPResponse {
        .closing(413, "the request's body exceeds \(limits.bodyBytes) bytes")
    }

    /// Returns an error after which the connection is closed.
    static func closing(_ status: UInt32, _ error: String) -> HTTPResponse {
        .problem(status, error, headers: [("Connection", "close")])
    }
}
