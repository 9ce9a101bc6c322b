import LarderPlatform

/// A parsed request. Its contents are not validated yet.
struct HTTPRequest: Sendable {
    let method: String
    let target: RequestTarget
    /// The headers in the order of the request; names in lower case.
    let headers: [(name: String, value: String)]
    let body: [UInt8]

    /// Returns the value of a header, given its lower-case name; nil unless there is exactly one.
    func header(_ name: String) -> String? {
        let values = headers.filter { $0.name == name }
        return values.count == 1 ? values[0].value : nil
    }

    func hasHeader(_ name: String) -> Bool { headers.contains { $0.name == name } }

    /// Returns the value of a cookie; nil unless there is exactly one.
    func cookie(_ name: String) -> String? {
        let all = headers.filter { $0.name == "cookie" }.flatMap { $0.value.split(separator: ";") }
        let values = all.compactMap { pair -> Substring? in
            let pair = pair.drop { $0 == " " }
            return pair.hasPrefix(name + "=") ? pair.dropFirst(name.count + 1) : nil
        }
        return values.count == 1 ? String(values[0]) : nil
    }
}

/// The path and the query of a request. Values are bytes, like keys.
struct RequestTarget: Sendable {
    let path: String
    private let query: [(name: String, value: [UInt8])]

    /// Parses the target in the first line of a request.
    /// - Returns: nil if the target is not a path, or is malformed.
    init?(_ text: [UInt8]) {
        let parts = text.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, first.first == UInt8(ascii: "/"),
            let bytes = PercentEncoding.decoded(first),
            let path = String(validating: bytes, as: UTF8.self), !path.utf8.contains(0)
        else { return nil }
        self.path = path
        guard let query = Self.form(parts.count > 1 ? parts[1] : []) else { return nil }
        self.query = query
    }

    /// Returns the value of a parameter; nil unless there is exactly one.
    func bytes(_ name: String) -> [UInt8]? { Self.value(name, query) }

    func text(_ name: String) -> String? { bytes(name).flatMap { String(validating: $0, as: UTF8.self) } }

    static func value(_ name: String, _ form: [(name: String, value: [UInt8])]) -> [UInt8]? {
        let values = form.filter { $0.name == name }
        return values.count == 1 ? values[0].value : nil
    }

    /// The maximum number of parameters. No valid request has more.
    private static let parametersMax = 16

    /// Parses `name=value&…`.
    /// - Parameter hasPlus: whether `+` means a space, as in form data.
    /// - Returns: nil if it is malformed.
    static func form(_ text: ArraySlice<UInt8>, hasPlus: Bool = false) -> [(name: String, value: [UInt8])]? {
        var form: [(name: String, value: [UInt8])] = []
        for part in text.split(separator: UInt8(ascii: "&")) {
            guard form.count < parametersMax else { return nil }
            let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = PercentEncoding.decoded(pair[0]).flatMap({ String(validating: $0, as: UTF8.self) }) else {
                return nil
            }
            let value = pair.count > 1 ? pair[1] : []
            let spaced = hasPlus ? ArraySlice(value.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 }) : value
            guard let bytes = PercentEncoding.decoded(spaced) else { return nil }
            form.append((name, bytes))
        }
        return form
    }
}

/// Checks a request's head before it is used. An ambiguous head is refused, because a proxy in front of larderweb may
/// parse it differently.
enum RequestFraming {
    /// - Parameters:
    ///   - target: the target in the first line.
    ///   - headers: all headers, in order; names in lower case.
    /// - Returns: the response to an invalid request, after which the connection is closed; nil if the request is
    ///   valid.
    static func refusal(
        _ target: [UInt8], _ headers: [(name: String, value: String)], _ limits: HTTPServer.Limits
    ) -> HTTPResponse? {
        let bytes = headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
        guard target.count <= limits.headBytes, target.count + bytes <= limits.headBytes else {
            let status: UInt32 = target.count > limits.headBytes ? 414 : 431
            return closing(status, "the request's head exceeds \(limits.headBytes) bytes")
        }
        guard headers.allSatisfy({ isToken($0.name) && isText($0.value) }) else {
            return closing(400, "a header's name or value has invalid characters")
        }
        func values(_ name: String) -> [String] { headers.filter { $0.name == name }.map(\.value) }
        guard values("host").count == 1 else { return closing(400, "a request must have exactly one Host header") }
        return lengthProblem(values("content-length"), values("transfer-encoding"), limits)
    }

    private static func lengthProblem(
        _ lengths: [String], _ codings: [String], _ limits: HTTPServer.Limits
    ) -> HTTPResponse? {
        guard lengths.count + codings.count <= 1 else {
            return closing(400, "a request must have at most one Content-Length or Transfer-Encoding")
        }
        if let coding = codings.first, coding.lowercased() != "chunked" {
            return closing(501, "the only supported Transfer-Encoding is chunked")
        }
        guard let length = lengths.first else { return nil }
        guard !length.isEmpty, length.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return closing(400, "Content-Length must be a number")
        }
        guard let number = Int(length), number <= limits.bodyBytes else { return tooLong(limits) }
        return nil
    }

    static func tooLong(_ limits: HTTPServer.Limits) -> HTTPResponse {
        closing(413, "the request's body exceeds \(limits.bodyBytes) bytes")
    }

    private static func closing(_ status: UInt32, _ error: String) -> HTTPResponse {
        .problem(status, error, headers: [("Connection", "close")])
    }

    /// Whether a header's name in lower case is a token as in RFC 9110, section 5.6.2.
    private static func isToken(_ name: String) -> Bool {
        !name.isEmpty
            && name.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte) || "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
    }

    private static func isText(_ value: String) -> Bool {
        value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 9 }
    }
}
