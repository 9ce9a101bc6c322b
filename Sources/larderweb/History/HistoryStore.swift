import JSONCoding
import LarderClient

/// Samples in a database of the daemon, one for each minute, under `sample:<minute since 1970>`. They expire after 25 hours.
struct HistoryStore: Sendable {
    private let link: DaemonLink
    private let database: String

    private static let seconds = 90_000

    init(_ link: DaemonLink, _ database: String) {
        self.link = link
        self.database = database
    }

    private static func key(_ minute: Int64) -> [UInt8] { Array("sample:\(minute)".utf8) }

    func keep(_ sample: Sample) throws(LarderClientError) {
        guard let text = try? JSONCoder().encode(sample) else { return }
        let words = [
            Array("SET".utf8), Self.key(sample.time / 60), text, Array("EX".utf8), Array("\(Self.seconds)".utf8),
        ]
        _ = try link.command(words, database: database)
    }

    /// More steps than a day's samples need.
    private static let stepsMax = 20

    /// The samples since an instant, the oldest first. What cannot be read as one is left out.
    func kept(since start: Int64) throws(LarderClientError) -> [Sample] {
        var keys: [[UInt8]] = []
        var cursor = "0"
        // Only what is there is read: misses would stand in the figures.
        for _ in 0..<Self.stepsMax {
            let words = ["SCAN", cursor, "MATCH", "sample:*", "COUNT", "1000"].map { Array($0.utf8) }
            guard let parts = try link.command(words, database: database).elements, parts.count == 2 else { break }
            keys += (parts[1].elements ?? []).compactMap(\.bytes)
            cursor = parts[0].string ?? "0"
            if cursor == "0" { break }
        }
        guard !keys.isEmpty else { return [] }
        let reply = try link.command([Array("MGET".utf8)] + keys, database: database)
        return (reply.elements ?? []).compactMap { value in
            value.bytes.flatMap { try? JSONCoder().decode(Sample.self, from: $0) }
        }.filter { $0.time >= start }.sorted { $0.time < $1.time }
    }
}
