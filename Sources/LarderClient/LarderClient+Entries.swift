// Entries as bytes: read, write, remove, ask about, list.

import RESP

extension LarderClient {
    /// How long an entry still has.
    public enum TimeToLive: Hashable, Sendable {
        /// It does not expire.
        case never
        case milliseconds(Int64)
    }

    /// Stores bytes.
    /// - Parameters:
    ///   - key: the entry's name; an entry of that name is replaced, with its deadline.
    ///   - policy: how long this entry stays fresh; nil leaves it to the database's policy.
    public func setBytes(_ bytes: [UInt8], forKey key: String, policy: UpdatePolicy? = nil)
        throws(LarderClientError)
    {
        try store(bytes, forKey: Array(key.utf8), policy: policy, codec: nil)
    }

    /// The bytes of a fresh entry; nil when there is none.
    public func bytes(forKey key: String) throws(LarderClientError) -> [UInt8]? {
        try bytes(forKey: Array(key.utf8))
    }

    /// Removes entries, all in one step.
    /// - Returns: how many of them were there.
    @discardableResult
    public func remove(_ keys: String...) throws(LarderClientError) -> Int {
        try removeMany(keys)
    }

    /// Removes entries, all in one step. For no keys, nothing is sent.
    /// - Returns: how many of them were there.
    @discardableResult
    public func removeMany(_ keys: some Sequence<String>) throws(LarderClientError) -> Int {
        try removeMany(keys.map { Array($0.utf8) })
    }

    /// Whether there is a fresh entry of that name.
    public func contains(_ key: String) throws(LarderClientError) -> Bool {
        let key = Array(key.utf8)
        return try integer([Array("EXISTS".utf8), key], key: key) > 0
    }

    /// How long an entry still has; nil when there is no fresh entry of that name.
    public func timeToLive(forKey key: String) throws(LarderClientError) -> TimeToLive? {
        try timeToLive(forKey: Array(key.utf8))
    }

    /// What the daemon knows about an entry; nil when there is no fresh entry of that name. The value is not read.
    public func info(forKey key: String) throws(LarderClientError) -> EntryInfo? {
        try info(forKey: Array(key.utf8))
    }

    /// The keys of the database's fresh entries, each once, in no particular order.
    ///
    /// Every key that is there from the beginning to the end is among them; of others it is not certain. Many keys are
    /// better taken as they come: ``forEachKey(matching:_:)``.
    /// - Parameter pattern: `*` stands for any characters, `?` for one, `[a-c]` for one of these; nil for all keys.
    /// - Throws: `decode` when a key is not UTF-8 text; ``forEachKey(matching:_:)`` gives such keys too.
    public func keys(matching pattern: String? = nil) throws(LarderClientError) -> [String] {
        var seen: Set<String> = []
        var cursor: [UInt8]?
        repeat {
            let step = try scan(from: cursor, matching: pattern.map { Array($0.utf8) })
            for bytes in step.keys {
                guard let key = String(validating: bytes, as: UTF8.self) else {
                    throw LarderClientError(
                        .decode, "this key is not UTF-8 text: take keys as bytes with forEachKey", operation: "SCAN",
                        key: printableKey(bytes))
                }
                seen.insert(key)
            }
            cursor = step.next
        } while cursor != nil
        return Array(seen)
    }

    /// Gives the keys of the database's fresh entries to `body`, a few hundred per round trip, until it returns false.
    ///
    /// Every key that is there from the beginning to the end is given; of others it is not certain. The client is not
    /// held between round trips: `body` may call it.
    /// - Parameter pattern: as in ``keys(matching:)``.
    public func forEachKey(matching pattern: String? = nil, _ body: ([UInt8]) throws -> Bool) throws {
        try forEachKey(matching: pattern.map { Array($0.utf8) }, body)
    }
}

// Keys as bytes, for larderctl: what a shell passes need not be UTF-8.
extension LarderClient {
    package func store(_ value: [UInt8], forKey key: [UInt8], policy: UpdatePolicy?, codec: EntryInfo.Codec?)
        throws(LarderClientError)
    {
        var words = [Array("SET".utf8), key, value]
        if let policy { words += [Array("POLICY".utf8), Array(policy.description.utf8)] }
        if let codec { words += [Array("CODEC".utf8), Array(codec.description.utf8)] }
        let reply = try answer(words, key: key)
        guard reply == .simpleString("OK") else {
            throw LarderClientError.unexpectedReply(to: "SET", "OK", key: printableKey(key))
        }
    }

    package func bytes(forKey key: [UInt8]) throws(LarderClientError) -> [UInt8]? {
        switch try answer([Array("GET".utf8), key], key: key) {
        case .null: return nil
        case .bulk(let bytes): return bytes
        default: throw LarderClientError.unexpectedReply(to: "GET", "a value", key: printableKey(key))
        }
    }

    package func removeMany(_ keys: [[UInt8]]) throws(LarderClientError) -> Int {
        guard let first = keys.first else { return 0 }
        return Int(clamping: try integer([Array("DEL".utf8)] + keys, key: keys.count == 1 ? first : nil))
    }

    package func timeToLive(forKey key: [UInt8]) throws(LarderClientError) -> TimeToLive? {
        switch try integer([Array("PTTL".utf8), key], key: key) {
        case -2: return nil
        case -1: return .never
        case let milliseconds where milliseconds >= 0: return .milliseconds(milliseconds)
        default: throw LarderClientError.unexpectedReply(to: "PTTL", "a span of time", key: printableKey(key))
        }
    }

    package func info(forKey key: [UInt8]) throws(LarderClientError) -> EntryInfo? {
        let reply = try answer([Array("META".utf8), key], key: key)
        return reply.isNull ? nil : try EntryInfo(reply: reply)
    }

    package func forEachKey(matching pattern: [UInt8]?, _ body: ([UInt8]) throws -> Bool) throws {
        var cursor: [UInt8]?
        repeat {
            let step = try scan(from: cursor, matching: pattern)
            for key in step.keys where try !body(key) { return }
            cursor = step.next
        } while cursor != nil
    }

    /// One round trip of a scan. `next` is nil at the end.
    private func scan(from cursor: [UInt8]?, matching pattern: [UInt8]?) throws(LarderClientError)
        -> (keys: [[UInt8]], next: [UInt8]?)
    {
        let zero = Array("0".utf8)
        var words = [Array("SCAN".utf8), cursor ?? zero]
        if let pattern { words += [Array("MATCH".utf8), pattern] }
        words += [Array("COUNT".utf8), Array("500".utf8)]
        let reply = try answer(words)
        guard let parts = reply.elements, parts.count == 2, let next = parts[0].bytes, let found = parts[1].elements
        else { throw LarderClientError.unexpectedReply(to: "SCAN", "a cursor and keys") }
        var keys: [[UInt8]] = []
        keys.reserveCapacity(found.count)
        for key in found {
            guard let bytes = key.bytes else {
                throw LarderClientError.unexpectedReply(to: "SCAN", "a cursor and keys")
            }
            keys.append(bytes)
        }
        return (keys, next == zero ? nil : next)
    }
}
