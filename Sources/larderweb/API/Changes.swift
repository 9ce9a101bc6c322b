import LarderClient
import LarderJSONCoding
import LarderPlatform
import LarderRESP

/// Handles the requests that `--allow-changes` enables. Each request names a database. A deletion, and a change of an
/// entry's policy, also names a key. A purge repeats the database's name as a confirmation. A change of an index names
/// the index.
struct Changes: Sendable {
    private let collector: Collector

    init(_ collector: Collector) { self.collector = collector }

    private struct Request: Decodable {
        let database: String
        /// The key as hexadecimal digits.
        var key: String?
        var policy: String?
        var tag: String?
        /// The database's name, repeated to confirm a purge.
        var confirm: String?
        var index: String?
        /// The words of INDEX CREATE after the name.
        var definition: String?
    }

    /// Returns a response whose member `done` says whether there was anything to change.
    func respond(_ path: String, _ body: [UInt8]) throws(LarderClientError) -> HTTPResponse {
        guard let request = try? JSONCoder().decode(Request.self, from: body) else {
            return .problem(
                400, "the body must be a JSON object with the field database and the other fields of this endpoint")
        }
        defer { collector.forget() }
        let key = request.key.flatMap(HexText.bytes)
        switch path {
        case "/api/delete", "/api/policy":
            guard let key else { return .problem(400, "key is missing, or is not hexadecimal") }
            if path == "/api/delete" {
                return try change(request) { client throws(LarderClientError) in
                    ["done": try client.remove(key)]
                }
            }
            guard let policy = request.policy.flatMap({ UpdatePolicy($0) }) else {
                return .problem(400, "policy is \(UpdatePolicy.syntax)")
            }
            return try change(request) { client throws(LarderClientError) in
                ["done": try client.touch(key, policy: .policy(policy))]
            }
        case "/api/purge":
            guard request.confirm == request.database else {
                return .problem(400, "confirm must be the database's name")
            }
            return try change(request) { client throws(LarderClientError) in
                guard let tag = request.tag else {
                    // The number of entries is missing if they were not counted.
                    return ["done": true, "entries": try client.removeAll().entries]
                }
                try client.removeAll(tagged: tag)
                return ["done": true]
            }
        case "/api/create-index", "/api/drop-index":
            guard let name = request.index else { return .problem(400, "index is missing") }
            guard let definition = InlineWords.words(of: (request.definition ?? "").utf8) else {
                return .problem(400, "unbalanced quotes")
            }
            let words =
                path == "/api/drop-index"
                ? wordList("INDEX", "DROP", name) : wordList("INDEX", "CREATE", name) + definition
            return try change(request) { client throws(LarderClientError) in
                _ = try client.command(bytes: words).checked("INDEX")
                return ["done": true]
            }
        default: return .problem(404, "this path does not accept POST")
        }
    }

    /// Runs a change in the request's database.
    private func change(
        _ request: Request, _ body: (BlockingLarderClient) throws(LarderClientError) -> JSONObject
    ) throws(LarderClientError) -> HTTPResponse {
        .json(try collector.link.withClient(in: request.database, mayRepeat: false, body))
    }
}
