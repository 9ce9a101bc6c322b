import LarderRESP
import LarderVocabulary

/// How far a target has followed a source. Stands in the target itself, in a database for that alone: so it is as durable
/// as what it speaks of, and written behind it.
struct ReplicationMark: Codable, Equatable {
    /// The database for marks.
    static let database = CompanionName.positions

    /// Where to go on, as CHANGES gives it.
    var position = "0"
    /// Whether a full pass has ever ended.
    var isComplete = false
    /// While a full pass is under way: what the target has from that time or earlier, and the source does not name, goes;
    /// nil for nothing. In milliseconds since 1970.
    var over: Int64?
    /// When a target with entries of its own began to follow; 0 for one that had none. What is older is not known to
    /// have come from the source.
    var joined: Int64 = 0
    /// Whether the source follows the target too: then what the target lacks, it may have removed.
    var isPeer = false
    /// Whatever the target has from this source was there before this time of the source.
    var applied: Int64 = 0
    /// The target was told everything that the source had at this time of the source.
    var seen: Int64 = 0
    var changes = 0
    var passes = 0

    /// What of the target the source has known.
    var knownTimes: ClosedRange<Int64>? { over.flatMap { joined < $0 ? (joined + 1)...$0 : nil } }

    static func key(source: String, _ options: ReplicationOptions) -> [UInt8] {
        Array("\(source)|\(options.database)\(options.filter)".utf8)
    }

    /// The mark in a larder.
    /// - Returns: nil if there is none.
    static func read(_ client: BlockingLarderClient, _ key: [UInt8]) throws(LarderClientError) -> ReplicationMark? {
        let replies = try inDatabase(client, [[Array("GET".utf8), key]])
        // Who may not read it has not found that there is none.
        if let text = replies.first?.errorMessage { throw LarderClientError.server(text, operation: "GET") }
        guard let bytes = replies.first?.bytes else { return nil }
        return try client.decoded(ReplicationMark.self, bytes, key)
    }

    /// Writes the mark into a larder.
    func write(_ client: BlockingLarderClient, _ key: [UInt8]) throws(LarderClientError) {
        let (bytes, codec) = try client.encoded(self, key)
        let set = [Array("SET".utf8), key, bytes] + wordList("CODEC", codec.description, "POLICY", "never")
        let replies = try Self.inDatabase(client, [set])
        if let text = replies.first?.errorMessage { throw LarderClientError.server(text, operation: "SET") }
    }

    /// Runs commands in the database for marks, and selects the client's database again.
    private static func inDatabase(
        _ client: BlockingLarderClient, _ commands: [[[UInt8]]]
    ) throws(LarderClientError) -> [RESPValue] {
        let name = client.name
        try client.select(Self.database)
        let replies = Result { () throws(LarderClientError) in try client.pipeline(commands) }
        // Whoever uses the client behind an error here uses another database: a follower ends with it.
        try client.select(name)
        guard try replies.get().count == commands.count else {
            throw LarderClientError.unexpectedReply(to: "SELECT", "one answer for each command")
        }
        return try replies.get()
    }
}
