import LarderRESP

/// A change of the source that a custom conflict rule accepts or rejects. Reads the target's entry, calls the rule, and
/// writes only if the entry has not changed in the meantime.
struct ConflictedChange {
    /// The command that applies the change with the default rule: PLACE or UNPLACE.
    private let command: [[UInt8]]
    private let client: BlockingLarderClient

    private static let attempts = 100

    init(_ command: [[UInt8]], _ client: BlockingLarderClient) { (self.command, self.client) = (command, client) }

    private var key: [UInt8] { command[1] }
    private var isRemoval: Bool { command[0] == Array("UNPLACE".utf8) }

    func apply(
        _ decide: (ReplicationConflict) -> Bool, _ counts: inout FollowerTarget.Counts
    ) throws(LarderClientError) {
        for _ in 0..<Self.attempts {
            if try attempt(decide, &counts) { return }
        }
        throw LarderClientError(
            .conflict, "other clients changed the entry in each of \(Self.attempts) attempts to replicate the change",
            operation: "replicate", key: printableKey(key))
    }

    /// Tries once to apply the change.
    /// - Returns: false if the entry was changed in the meantime.
    private func attempt(
        _ decide: (ReplicationConflict) -> Bool, _ counts: inout FollowerTarget.Counts
    ) throws(LarderClientError) -> Bool {
        let looked = try client.pipelineWithoutErrors([
            [Array("WATCH".utf8), key], [Array("GET".utf8), key], [Array("META".utf8), key],
        ])
        guard looked.count == 3 else { throw LarderClientError.unexpectedReply(to: "GET", "three answers") }
        if let present = looked[1].bytes {
            let incoming = isRemoval ? nil : command[2]
            let presentTime = try ReplyFields(looked[2], of: "META").integer("stored-at")
            let conflict = ReplicationConflict(
                key: key, incoming: incoming, incomingTime: time, present: present, presentTime: presentTime)
            if incoming == present || !decide(conflict) {
                counts.kept += 1
                try client.pipelineWithoutErrors([wordList("UNWATCH")])
                return true
            }
        }
        return try write(hasPresent: looked[1].bytes != nil, &counts)
    }

    /// The time at which the change was made, in milliseconds since 1970.
    private var time: Int64 {
        let mark = Array((isRemoval ? "" : "STOREDAT").utf8)
        let word = isRemoval ? command[2] : command.firstIndex(of: mark).map { command[$0 + 1] } ?? []
        return Int64(String(decoding: word.prefix { $0 != UInt8(ascii: "-") }, as: UTF8.self)) ?? 0
    }

    private func write(hasPresent: Bool, _ counts: inout FollowerTarget.Counts) throws(LarderClientError) -> Bool {
        var steps: [[[UInt8]]] = []
        // Write without a version: with one, the target would compare the times of the changes, but the rule has
        // already decided.
        if hasPresent || isRemoval { steps.append([Array("DEL".utf8), key]) }
        if !isRemoval { steps.append(withoutVersion) }
        let replies = try client.pipeline([wordList("MULTI")] + steps + [wordList("EXEC")])
        guard let results = try BatchPlan.results(of: steps, replies) else { return false }
        for result in results {
            if let text = result.errorMessage {
                throw LarderClientError.server(text, operation: "PLACE", key: printableKey(key))
            }
        }
        if isRemoval {
            if hasPresent { counts.removed += 1 } else { counts.kept += 1 }
        } else if let last = results.last {
            try counts.add(last, to: command)
        }
        return true
    }

    private var withoutVersion: [[UInt8]] {
        // VERSION and the words after it are the last options of PLACE: see StoredEntry.placing.
        guard let place = command.lastIndex(of: Array("VERSION".utf8)) else { return command }
        return Array(command[..<place])
    }
}

extension BlockingLarderClient {
    /// Like ``pipeline(_:)``, but throws errors of the server.
    @discardableResult
    func pipelineWithoutErrors(_ commands: [[[UInt8]]]) throws(LarderClientError) -> [RESPValue] {
        let replies = try pipeline(commands)
        for reply in replies { _ = try reply.checked("pipeline") }
        return replies
    }
}
