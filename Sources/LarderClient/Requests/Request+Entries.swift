// Requests about entries: reads, conditional writes, counters, lifetimes, and the enumeration of keys.

import LarderRESP

// MARK: Reading

extension Request where Result == [UInt8]? {
    static func get(_ key: [UInt8]) -> Request { value(of: [Array("GET".utf8), key], isRead: true) }

    /// Returns the value and removes the entry.
    static func take(_ key: [UInt8]) -> Request { value(of: [Array("GETDEL".utf8), key]) }

    /// Returns the value and changes the lifetime of the entry. Policies and errors as for
    /// ``Request/touch(_:_:_:)``.
    static func get(_ key: [UInt8], renewing policy: EntryPolicy, _ database: String) throws(LarderClientError)
        -> Request
    {
        let change = try LifetimeChange(policy, "GETEX", database, key)
        let words: [[UInt8]] =
            switch change {
            case .none: []
            case .persist: wordList("PERSIST")
            case .after(let interval): wordList("PX", "\(interval)")
            case .at(let instant): wordList("PXAT", "\(max(1, instant))")
            }
        return value(of: [Array("GETEX".utf8), key] + words)
    }

    private static func value(of words: [[UInt8]], isRead: Bool = false) -> Request {
        Request(words, key: words[1], isRead: isRead, expects: "a value") { reply in
            switch reply {
            case .null: .some(nil)
            case .bulk(let bytes): bytes
            default: nil
            }
        }
    }
}

extension Request where Result == [[UInt8]?] {
    static func getAll(_ keys: [[UInt8]]) -> Request {
        Request(wordList("MGET") + keys, isRead: true, expects: "one value for each key") {
            (reply) throws(LarderClientError) in
            guard let elements = reply.elements, elements.count == keys.count else { return nil }
            var values: [[UInt8]?] = []
            values.reserveCapacity(keys.count)
            for (key, element) in zip(keys, elements) {
                switch element {
                case .null: values.append(nil)
                case .bulk(let bytes): values.append(bytes)
                default: throw .unexpectedReply(to: "MGET", "a value", key: printableKey(key))
                }
            }
            return values
        }
    }
}

extension Request where Result == TimeToLive? {
    static func timeToLive(_ key: [UInt8]) -> Request {
        Request([Array("PTTL".utf8), key], key: key, isRead: true, expects: "a time in milliseconds") { reply in
            guard case .integer(let number) = reply else { return nil }
            switch number {
            case -2: return .some(nil)
            case -1: return .never
            case 0...: return .milliseconds(number)
            default: return nil
            }
        }
    }
}

extension Request where Result == EntryInfo? {
    static func info(_ key: [UInt8]) -> Request {
        Request([Array("META".utf8), key], key: key, isRead: true, expects: "a map") {
            (reply) throws(LarderClientError) in
            reply.isNull ? .some(nil) : try EntryInfo(reply: reply)
        }
    }
}

extension Request where Result == [String]? {
    /// Returns those tags of an entry that are text; nil if there is no fresh entry.
    static func tags(_ key: [UInt8]) -> Request {
        Request([Array("TAGS".utf8), key], key: key, isRead: true, expects: "tags") { reply in
            tagList(reply).map { $0.map(TagRules.texts) }
        }
    }
}

extension Request where Result == [[UInt8]]? {
    /// Returns all tags of an entry; nil without a fresh entry.
    static func tagBytes(_ key: [UInt8]) -> Request {
        Request([Array("TAGS".utf8), key], key: key, isRead: true, expects: "tags") { tagList($0) }
    }
}

/// Reads the reply to `TAGS`.
/// - Returns: the tags of an entry; an inner nil if there is no entry; an outer nil for a reply of an unexpected form.
private func tagList(_ reply: RESPValue) -> [[UInt8]]?? {
    if reply.isNull { return .some(nil) }
    guard let elements = reply.elements else { return nil }
    let tags = elements.compactMap(\.bytes)
    return tags.count == elements.count ? tags : nil
}

/// One round trip of an enumeration of keys.
struct ScanStep: Sendable {
    let keys: [[UInt8]]
    /// The request for the next keys; nil at the end.
    let next: Request<ScanStep>?

    static func text(_ key: [UInt8]) -> String? { String(validating: key, as: UTF8.self) }

    /// Returns the keys that are text and that no earlier step had.
    /// - Parameter seen: the keys of the earlier steps, to which this adds its keys.
    func texts(notIn seen: inout Set<[UInt8]>) -> [String] {
        keys.compactMap { seen.insert($0).inserted ? Self.text($0) : nil }
    }

    /// Returns all keys that are text, each once.
    static func texts(
        matching pattern: String?, _ perform: (Request<ScanStep>) async throws(LarderClientError) -> ScanStep
    ) async throws(LarderClientError) -> [String] {
        var next: Request<ScanStep>? = .scan(matching: pattern?.keyBytes)
        var seen: Set<[UInt8]> = []
        var keys: [String] = []
        while let request = next {
            let step = try await perform(request)
            keys += step.texts(notIn: &seen)
            next = step.next
        }
        return keys
    }
}

extension Request where Result == ScanStep {
    /// Requests the first keys of an enumeration.
    /// - Parameters:
    ///   - cursor: the daemon's cursor, for the next keys.
    ///   - pattern: a glob pattern; nil for all keys.
    static func scan(from cursor: [UInt8] = Array("0".utf8), matching pattern: [UInt8]?) -> Request {
        var list = [Array("SCAN".utf8), cursor]
        if let pattern { list += [Array("MATCH".utf8), pattern] }
        list += wordList("COUNT", "500")
        return Request(list, isRead: true, expects: "a cursor and keys") { reply in
            guard let parts = reply.elements, parts.count == 2, let next = parts[0].bytes,
                let found = parts[1].elements
            else { return nil }
            var keys: [[UInt8]] = []
            keys.reserveCapacity(found.count)
            for key in found {
                guard let bytes = key.bytes else { return nil }
                keys.append(bytes)
            }
            return ScanStep(
                keys: keys, next: next == Array("0".utf8) ? nil : .scan(from: next, matching: pattern))
        }
    }
}

// MARK: Writing

extension Request where Result == Void {
    /// Stores entries with the same policy, tags and codec, as one command of larderd.
    static func setAll(_ entries: [NewEntry]) -> Request {
        var list = wordList("MSETEX", String(entries.count)) + entries.flatMap { [$0.key, $0.bytes] }
        if let first = entries.first {
            list += first.policy.words(for: ServerKind())
            list += wordList("CODEC", first.codec.description)
            list += first.tags.words
        }
        return Request(list, changing: entries.map(\.key), expects: "1") { $0 == .integer(1) ? () : nil }
    }

    /// Stores entries without a policy as one command of Redis.
    static func setAllInRedis(_ entries: [NewEntry]) -> Request {
        Request(
            wordList("MSET") + entries.flatMap { [$0.key, $0.bytes] }, changing: entries.map(\.key), expects: "OK"
        ) { $0 == .simpleString("OK") ? () : nil }
    }
}

extension Request where Result == Int64 {
    /// Removes keys, and returns the number of those that existed.
    static func remove(_ keys: [[UInt8]]) -> Request {
        integer(wordList("DEL") + keys, key: keys.count == 1 ? keys.first : nil, changing: keys)
    }

    static func increment(_ key: [UInt8], by step: Int64) -> Request {
        integer([Array("INCRBY".utf8), key, Array("\(step)".utf8)], key: key)
    }
}

extension Request where Result == Double {
    static func increment(_ key: [UInt8], by step: Double) -> Request {
        Request([Array("INCRBYFLOAT".utf8), key, Array("\(step)".utf8)], key: key, expects: "a number") {
            (reply) throws(LarderClientError) in
            guard let sum = reply.string.flatMap({ Double($0) }) else { return nil }
            // larderd refuses a sum that is not a finite Double. Redis computes with more bits, and has stored the sum.
            guard sum.isFinite else {
                throw LarderClientError(
                    .decode, "the sum was stored, but exceeds the range of a Double", operation: "INCRBYFLOAT",
                    key: printableKey(key))
            }
            return sum
        }
    }
}

extension Request where Result == Bool {
    static func contains(_ key: [UInt8]) -> Request { flag([Array("EXISTS".utf8), key], isRead: true) }

    /// Removes an entry if it has a given value.
    static func remove(_ key: [UInt8], ifEqual value: [UInt8]) -> Request {
        flag([Array("DELEX".utf8), key, Array("IFEQ".utf8), value])
    }

    /// Returns the requests that change the lifetime of an entry, in order. The result of the last one is whether there
    /// was a fresh entry.
    /// - Throws: `invalidArgument` for an invalid lifetime, or for a lifetime that no command of the daemon can set.
    static func touch(_ key: [UInt8], _ policy: EntryPolicy, _ database: String) throws(LarderClientError)
        -> [Request]
    {
        switch try LifetimeChange(policy, "touch", database, key) {
        case .none: [contains(key)]
        // The reply to PERSIST is the same for a missing entry and for an entry that does not expire, so EXISTS
        // follows.
        case .persist: [flag([Array("PERSIST".utf8), key]), contains(key)]
        case .after(let interval): [flag([Array("PEXPIRE".utf8), key, Array("\(interval)".utf8)])]
        case .at(let instant): [flag([Array("PEXPIREAT".utf8), key, Array("\(instant)".utf8)])]
        }
    }

    private static func flag(_ words: [[UInt8]], isRead: Bool = false) -> Request {
        Request(words, key: words[1], isRead: isRead, expects: "a number") { reply in
            if case .integer(let number) = reply { number > 0 } else { nil }
        }
    }
}

/// A change of the lifetime of an existing entry. Times are in milliseconds.
private enum LifetimeChange {
    case none
    case persist
    case after(Int64)
    case at(Int64)

    init(_ policy: EntryPolicy, _ operation: String, _ database: String, _ key: [UInt8]) throws(LarderClientError) {
        func refusal(_ message: String) -> LarderClientError {
            LarderClientError(
                .invalidArgument, message, operation: operation, database: database, key: printableKey(key))
        }
        let policy = try policy.checked(operation, database, key: key)
        if policy.grace != nil { throw refusal(EntryPolicy.graceStays) }
        switch policy.lifetime {
        case .governed:
            throw refusal(
                "the daemon has no command that makes an entry follow its database's policy again; store it again "
                    + "instead")
        case .keep: self = .none
        case .until(let instant): self = .at(instant)
        case .policy(let interval):
            self =
                interval.intervalMilliseconds.map { .after(Jitter.shortened($0, by: policy.jitter ?? 0)) } ?? .persist
        }
    }
}
