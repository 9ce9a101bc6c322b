import LarderJSONCoding

/// Memory that stays as it is for as long as the process lives.
///
/// The proof for `@unchecked Sendable`: nobody writes to it.
struct ConstantBytes: @unchecked Sendable {
    let memory: UnsafeRawBufferPointer
}

/// An answer.
struct HTTPResponse: Sendable {
    enum Body: Sendable {
        case bytes([UInt8])
        case constant(ConstantBytes)
    }

    var status: UInt32 = 200
    var headers: [(name: String, value: String)]
    var body: Body

    /// - Parameter cache: what a browser may keep.
    init(
        status: UInt32 = 200, type: String, _ body: Body, cache: String = "no-store",
        headers: [(name: String, value: String)] = []
    ) {
        self.status = status
        self.headers = [("Content-Type", type), ("Cache-Control", cache)] + headers
        self.body = body
    }

    /// What every answer has: nothing of it is for other sites, and nothing runs that does not come from here.
    static let common: [(name: String, value: String)] = [
        (
            "Content-Security-Policy",
            "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        ),
        ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"), ("Referrer-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"), ("Cross-Origin-Opener-Policy", "same-origin"),
    ]

    static func text(
        _ text: String, status: UInt32 = 200, type: String = "text/plain; charset=utf-8",
        headers: [(name: String, value: String)] = []
    ) -> HTTPResponse {
        HTTPResponse(status: status, type: type, .bytes(Array(text.utf8)), headers: headers)
    }

    static func json(_ value: some Encodable, status: UInt32 = 200) -> HTTPResponse {
        do {
            return HTTPResponse(status: status, type: "application/json", .bytes(try JSONCoder().encode(value)))
        } catch {
            return .text("the answer cannot be written: \(error)\n", status: 500)
        }
    }

    private struct Problem: Encodable {
        let error: String
    }

    /// What was wrong, as JSON: `{"error": "…"}`.
    static func problem(
        _ status: UInt32, _ error: String, headers: [(name: String, value: String)] = []
    ) -> HTTPResponse {
        var response = json(Problem(error: error), status: status)
        response.headers += headers
        return response
    }

    static func redirect(to path: String, headers: [(name: String, value: String)] = []) -> HTTPResponse {
        .text("see \(path)\n", status: 303, headers: [("Location", path)] + headers)
    }
}
