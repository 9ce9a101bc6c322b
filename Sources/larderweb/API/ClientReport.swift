import LarderClient

/// A client connection of the daemon: an element of the response to `/api/clients`.
struct ClientReport: Encodable {
    let id: String
    let name: String
    let database: String
    let command: String
    let age: Double
    let idle: Double
    let outputBytes: Double

    private static let countMax = 200

    /// Returns the 200 most recently active connections, most recent first.
    static func all(_ link: DaemonLink) throws(LarderClientError) -> [ClientReport] {
        let text = try link.command("CLIENT", "LIST").string ?? ""
        let all = text.split(separator: "\n").map { line in
            var fields: [Substring: Substring] = [:]
            for word in line.split(separator: " ") {
                let pair = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                if pair.count == 2 { fields[pair[0]] = pair[1] }
            }
            func number(_ name: Substring) -> Double { fields[name].flatMap { Double($0) } ?? 0 }
            func word(_ name: Substring) -> String { String(fields[name] ?? "") }
            return ClientReport(
                id: word("id"), name: word("name"), database: word("db"), command: word("cmd"), age: number("age"),
                idle: number("idle"), outputBytes: number("omem"))
        }
        return Array(all.sorted { $0.idle < $1.idle }.prefix(countMax))
    }
}
