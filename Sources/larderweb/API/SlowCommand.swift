import LarderClient
import LarderVocabulary

/// A command of the slow log. An element of `/api/slow`.
struct SlowCommand: Encodable {
    let time: Int64
    let seconds: Double
    /// Its words, cut.
    let words: [String]
    let client: String

    private static let countMax = "32"
    private static let wordsMax = 6

    static func newest(_ link: DaemonLink) throws(LarderClientError) -> [SlowCommand] {
        let reply = try link.command("SLOWLOG", "GET", countMax)
        return (reply.elements ?? []).compactMap { entry in
            guard let parts = entry.elements, parts.count >= 4, let time = parts[1].int, let spent = parts[2].int else {
                return nil
            }
            let words = (parts[3].elements ?? []).compactMap { $0.bytes.map { printableKey($0) } }
            let client = parts.count > 5 ? parts[5].string ?? "" : ""
            return SlowCommand(
                time: time, seconds: Double(spent) / 1_000_000,
                words: words.prefix(wordsMax) + (words.count > wordsMax ? ["…"] : []), client: client)
        }
    }
}

/// A connection of the daemon. An element of `/api/clients`.
struct ClientReport: Encodable {
    let id: String
    let name: String
    let database: String
    let command: String
    let age: Double
    let idle: Double
    let outputBytes: Double

    private static let countMax = 200

    /// The busiest first, as far as their idle time tells.
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
