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
