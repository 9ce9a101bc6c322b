import LarderRESP
import LarderVocabulary

/// The progress of a follower: how far a target has followed a source. The follower stores the mark in the target, in a
/// separate database, after the changes that the mark covers. So the mark is as durable as these changes.
struct ReplicationMark: Codable, Equatable {
    static let database = CompanionName.positions

    /// The position to resume from, as returned by CHANGES.
    var position = "0"
    /// Whether a full pass has ever completed.
    var isComplete = false
    /// Used during a full pass, in milliseconds since 1970. Entries of the target that were stored up to this time are
    /// removed if the source does not list them. Nil to remove none.
    var over: Int64?
    /// The time when the target began to follow, if it had entries of its own then; otherwise 0. Entries stored before
    /// this time need not be from the source.
    var joined: Int64 = 0
    /// Whether the source follows the target too. If so, the target may have removed an entry that it lacks.
    var isPeer = false
    /// The time, by the source's clock, before which all changes of the source were applied to the target.
    var applied: Int64 = 0
    /// The latest time, by the source's clock, at which the target was known to have received everything from the
    /// source.
    var seen: Int64 = 0
    var changes = 0
    var passes = 0

    /// The time range of those target entries that the source must have seen; nil for none.
    var knownTimes: ClosedRange<Int64>? { over.flatMap { joined < $0 ? (joined + 1)...$0 : nil } }

    static func key(source: String, _ options: ReplicationOptions) -> [UInt8] {
        Array("\(source)|\(options.database)\(options.filter)".utf8)
    }

    /// Reads the mark from a larder.
    /// - Returns: nil if there is none.
    static func read(_ client: BlockingLarderClient, _ key: [UInt8]) throws(LarderClientError) -> ReplicationMark? {
        // Throws also if the user has no permission to read the mark, because a mark may exist.
        let reply = try inDatabase(client, [[Array("GET".utf8), key]]).first?.checked("GET")
        return try client.decoded(ReplicationMark.self, reply?.bytes, key)
    }

    /// Writes the mark into a larder.
    func write(_ client: BlockingLarderClient, _ key: [UInt8]) throws(LarderClientError) {
        let entry = try client.newEntry(self, key, .never, [])
        _ = try Self.inDatabase(client, [entry.words(for: ServerKind())]).first?.checked("SET")
    }

    /// Runs commands in the database for marks, and selects the client's database again.
    private static func inDatabase(
        _ client: BlockingLarderClient, _ commands: [[[UInt8]]]
    ) throws(LarderClientError) -> [RESPValue] {
        let name = client.name
        try client.select(Self.database)
        let replies = Result { () throws(LarderClientError) in try client.pipeline(commands) }
        // If this fails, the client has the wrong database selected, and the follower cannot continue.
        try client.select(name)
        guard try replies.get().count == commands.count else {
            throw LarderClientError.unexpectedReply(to: "SELECT", "one answer for each command")
        }
        return try replies.get()
    }
}
