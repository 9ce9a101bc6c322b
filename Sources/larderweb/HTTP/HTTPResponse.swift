import LarderJSONCoding

struct HTTPResponse: Sendable {
    var status: UInt32 = 200
    var headers: [(name: String, value: String)]
    var body: [UInt8]

    /// - Parameter cache: the value of the header Cache-Control.
    init(
        status: UInt32 = 200, type: String, _ body: [UInt8], cache: String = "no-store",
        headers: [(name: String, value: String)] = []
    ) {
        self.status = status
        self.headers = [("Content-Type", type), ("Cache-Control", cache)] + headers
        self.body = body
    }

    /// Headers of all responses: other sites must not use the responses, and only larderweb's own scripts may run.
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
        HTTPResponse(status: status, type: type, Array(text.utf8), headers: headers)
    }

    static func json(_ value: some Encodable, status: UInt32 = 200) -> HTTPResponse {
        do {
            return HTTPResponse(status: status, type: "application/json", try JSONCoder().encode(value))
        } catch {
            return .text("the response cannot be encoded: \(error)\n", status: 500)
        }
    }

    private struct Problem: Encodable {
        let error: String
    }

    /// Returns an error as JSON: `{"error": "…"}`.
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
