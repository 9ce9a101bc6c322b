// The writes of a batch, and the commands that apply them.

import LarderRESP

enum BatchChange: Sendable {
    case set(NewEntry)
    case remove([UInt8])

    var key: [UInt8] {
        switch self {
        case .set(let entry): entry.key
        case .remove(let key): key
        }
    }

    /// Checks that the server supports the tags.
    /// - Throws: `invalidArgument` for tags that the server would ignore.
    func check(for server: ServerKind) throws(LarderClientError) {
        if case .set(let entry) = self { try entry.tags.check(for: server, key: entry.key) }
    }

    func words(for server: ServerKind) -> [[UInt8]] {
        switch self {
        case .set(let entry): entry.words(for: server)
        case .remove(let key): [Array("DEL".utf8), key]
        }
    }
}

/// The commands that apply a batch atomically. A value type.
enum BatchPlan {
    case command(Request<Void>)
    /// Commands to send between MULTI and EXEC.
    case transaction([[[UInt8]]])

    /// Chooses the commands for some changes.
    /// - Parameter changes: at least one.
    /// - Throws: `invalidArgument` for tags that the server would ignore.
    init(_ changes: [BatchChange], for server: ServerKind) throws(LarderClientError) {
        for change in changes { try change.check(for: server) }
        if let request = Self.sets(changes, server) ?? Self.removals(changes) {
            self = .command(request)
        } else {
            self = .transaction(changes.map { $0.words(for: server) })
        }
    }

    /// Returns one command that stores all entries. Returns nil if a change is a removal, or if the entries differ in
    /// policy, tags or codec. In Redis, also nil for several entries with a policy, because MSET cannot set lifetimes.
    private static func sets(_ changes: [BatchChange], _ server: ServerKind) -> Request<Void>? {
        guard case .set(let first) = changes[0] else { return nil }
        if changes.count == 1 { return .expectingOK(first.words(for: server), key: first.key) }
        guard server.isLarder || first.policy.words(for: server).isEmpty else { return nil }
        var entries: [NewEntry] = []
        entries.reserveCapacity(changes.count)
        for change in changes {
            guard case .set(let entry) = change, entry.hasOptions(of: first) else { return nil }
            entries.append(entry)
        }
        return server.isLarder ? .setAll(entries) : .setAllInRedis(entries)
    }

    private static func removals(_ changes: [BatchChange]) -> Request<Void>? {
        var keys: [[UInt8]] = []
        keys.reserveCapacity(changes.count)
        for change in changes {
            guard case .remove(let key) = change else { return nil }
            keys.append(key)
        }
        return Request(wordList("DEL") + keys, changing: keys, expects: "a number") { reply in
            if case .integer = reply { () } else { nil }
        }
    }

    /// Returns the replies to the commands of a transaction.
    /// - Parameter replies: to MULTI, to each of the commands, and to EXEC.
    /// - Returns: nil if a watched key was changed.
    /// - Throws: `server` if the daemon refuses a command; that command's reply has the reason, and the later error of
    ///   EXEC does not.
    static func results(of commands: [[[UInt8]]], _ replies: [RESPValue]) throws(LarderClientError) -> [RESPValue]? {
        let names = ["MULTI"] + commands.map { $0.first.map { printableKey($0) } ?? "EXEC" } + ["EXEC"]
        for (name, reply) in zip(names, replies) { _ = try reply.checked(name) }
        guard let last = replies.last, !last.isNull else { return nil }
        guard let results = last.elements, results.count == commands.count else {
            throw .unexpectedReply(to: "EXEC", "an array of \(commands.count)")
        }
        return results
    }

    /// Records the changes of a transaction, as ``Request/noteWrites(_:in:_:)``. Throws the first error of the replies.
    static func check(
        _ replies: [RESPValue], to changes: [BatchChange], _ operation: String, in client: AnyObject, _ database: String
    ) throws(LarderClientError) {
        for change in changes { RunningUpdate.noteWrite(of: EntryUpdate.name(change.key, database), in: client) }
        for (reply, change) in zip(replies, changes) {
            guard let text = reply.errorMessage else { continue }
            throw .server(text, operation: operation, key: printableKey(change.key))
        }
    }
}
