import LarderJSONCoding

struct HTTPResponse: Sendable {
    typealias Headers = [(name: String, value: String)]

    let status: UInt32
    let headers: Headers
    let body: [UInt8]

    /// - Parameter cache: the value of the header Cache-Control.
    init(status: UInt32 = 200, type: String, _ body: [UInt8], cache: String = "no-store", headers: Headers = []) {
        self.status = status
        self.headers = [("Content-Type", type), ("Cache-Control", cache)] + headers
        self.body = body
    }

    /// Headers of all responses: other sites must not use the responses, and only larderweb's own scripts may run.
    static let common: Headers = [
        (
            "Content-Security-Policy",
            "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        ),
        ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"), ("Referrer-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"), ("Cross-Origin-Opener-Policy", "same-origin"),
    ]

    static func text(
        _ text: String, status: UInt32 = 200, type: String = "text/plain; charset=utf-8", headers: Headers = []
    ) -> HTTPResponse { HTTPResponse(status: status, type: type, Array(text.utf8), headers: headers) }

    static func json(_ object: JSONObject) -> HTTPResponse { encoded(object) }

    static func json(_ list: [some Encodable]) -> HTTPResponse { encoded(list) }

    /// Returns an error as JSON: `{"error": "…"}`.
    static func problem(_ status: UInt32, _ error: String, headers: Headers = []) -> HTTPResponse {
        encoded(["error": error] as JSONObject, status: status, headers: headers)
    }

    private static func encoded(_ value: some Encodable, status: UInt32 = 200, headers: Headers = []) -> HTTPResponse {
        do {
            let body = try JSONCoder().encode(value)
            return HTTPResponse(status: status, type: "application/json", body, headers: headers)
        } catch {
            return .text("the response cannot be encoded: \(error)\n", status: 500)
        }
    }

    static func redirect(to path: String, headers: Headers = []) -> HTTPResponse {
        .text("see \(path)\n", status: 303, headers: [("Location", path)] + headers)
    }
}

/// A JSON object for a response: its members in order, without those whose value is nil.
struct JSONObject: Encodable, ExpressibleByDictionaryLiteral {
    private let members: [(name: String, value: any Encodable)]

    init(dictionaryLiteral members: (String, (any Encodable)?)...) {
        self.members = members.compactMap { name, value in value.map { (name, $0) } }
    }

    subscript(name: String) -> (any Encodable)? { members.first { $0.name == name }?.value }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Name.self)
        for member in members { try object.encode(member.value, forKey: Name(stringValue: member.name)) }
    }
}
