import LarderClient
import LarderJSONCoding
import LarderPlatform

/// Handles the requests that `--allow-changes` enables. Each request names a database. A deletion, and a change of an
/// entry's policy, also names a key. A purge repeats the database's name as a confirmation.
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
    }

    private struct Done: Encodable {
        /// Whether there was anything to change.
        let done: Bool
        /// The number of entries removed by a purge; nil if they were not counted.
        var entries: Int64?
    }

    func respond(_ path: String, _ body: [UInt8]) throws(LarderClientError) -> HTTPResponse {
        guard let request = try? JSONCoder().decode(Request.self, from: body) else {
            return .problem(
                400, "the body must be a JSON object with the field database and the other fields of this endpoint")
        }
        defer { collector.forget() }
        switch path {
        case "/api/delete", "/api/policy":
            guard let key = request.key.flatMap(HexText.bytes) else {
                return .problem(400, "key is missing, or is not hexadecimal")
            }
            return path == "/api/delete" ? try delete(request.database, key) : try change(request, key)
        case "/api/purge":
            guard request.confirm == request.database else {
                return .problem(400, "confirm must be the database's name")
            }
            return try purge(request)
        default: return .problem(404, "this path does not accept POST")
        }
    }

    private func delete(_ database: String, _ key: [UInt8]) throws(LarderClientError) -> HTTPResponse {
        let reply = try collector.link.command([Array("DEL".utf8), key], database: database, mayRepeat: false)
        return .json(Done(done: reply.int == 1))
    }

    private func change(_ request: Request, _ key: [UInt8]) throws(LarderClientError) -> HTTPResponse {
        guard let text = request.policy, let policy = UpdatePolicy(text) else {
            return .problem(400, "policy is \(UpdatePolicy.syntax)")
        }
        let done = try collector.link.withClient(mayRepeat: false) { client throws(LarderClientError) -> Bool in
            try client.select(request.database)
            return try client.touch(key, policy: .policy(policy))
        }
        return .json(Done(done: done))
    }

    private func purge(_ request: Request) throws(LarderClientError) -> HTTPResponse {
        let entries = try collector.link.withClient(mayRepeat: false) { client throws(LarderClientError) -> Int64? in
            try client.select(request.database)
            if let tag = request.tag {
                try client.removeAll(tagged: tag)
                return nil
            }
            return try client.removeAll().entries.map(Int64.init)
        }
        return .json(Done(done: true, entries: entries))
    }
}
