// Requests of callers that fetch missing values.

import LarderFetching
import LarderRESP

struct FetchAnswer: Sendable {
    enum State: String, Sendable {
        case fresh, stale, lead, wait, absent, failed
    }

    let state: State
    let value: [UInt8]?
    /// The token of the caller's lease; 0 unless the state is `lead`.
    let token: UInt64
    /// The age of the value in milliseconds; -1 without a value.
    let age: Int64
    /// The remaining time in milliseconds, depending on `state`: of the entry, of the other caller's lease, or of the
    /// back-off. -1 for no end.
    let left: Int64

    /// Returns the reply for the fetching caller.
    /// - Parameters:
    ///   - value: the decoded value; nil if there is none, or it cannot be decoded.
    ///   - maxAge: the maximum age in the request.
    /// - Returns: nil for a value that cannot be decoded: the caller must ask for a newer one.
    func reply<Value>(_ value: Value?, _ maxAge: Int64?) -> FetchReply<Value>? {
        switch state {
        case .fresh: value.map { .fresh($0) }
        case .stale: value.map { .stale($0) }
        case .lead:
            .lead(
                token: token,
                value.map {
                    FoundValue($0, isFresh: left != 0, isYoung: maxAge.map { $0 > 0 && age <= $0 } ?? true)
                })
        case .wait: .wait
        case .absent: .absent
        case .failed: .failed(milliseconds: left)
        }
    }

    /// Returns the reply for a value of Redis, which has no leases and does not report the age of values: each process
    /// fetches for itself.
    static func redisReply<Value>(_ value: Value?, _ maxAge: Int64?) -> FetchReply<Value> {
        guard let value else { return .lead(token: 0, nil) }
        return maxAge == nil ? .fresh(value) : .lead(token: 0, FoundValue(value, isFresh: true, isYoung: false))
    }
}

extension Request where Result == FetchAnswer {
    /// Requests the value of a key, or a lease to fetch it.
    /// - Parameter wait: how long the daemon may wait before it replies, in milliseconds; nil for not at all.
    static func fetch(_ key: [UInt8], maxAge: Int64?, wait: Int64? = nil, lease: Int64?) -> Request {
        var words = [Array("FETCH".utf8), key]
        if let maxAge { words += wordList("MAXAGE", "\(maxAge)") }
        if let wait { words += wordList("WAIT", "\(wait)") }
        if let lease { words += wordList("LEASE", "\(lease)") }
        // The lease ends with the connection, so the request may be repeated.
        return Request(words, key: key, isRead: true, expects: "a state, a value and a token") { reply in
            guard let parts = reply.elements, parts.count == 6,
                let state = parts[0].string.flatMap({ FetchAnswer.State(rawValue: $0) }),
                let age = parts[4].int, let left = parts[5].int
            else { return nil }
            let token = parts[2].string.flatMap { UInt64($0) }
            if state == .lead, token == nil { return nil }
            if state == .fresh || state == .stale, parts[1].bytes == nil { return nil }
            return FetchAnswer(state: state, value: parts[1].bytes, token: token ?? 0, age: age, left: left)
        }
    }
}

extension Request where Result == Bool {
    /// Returns the request that ends a lease: stores the fetched value, or its absence for nil.
    /// - Parameter token: of the lease; 0 for none.
    /// - Returns: nil if there is no lease and nothing to store.
    static func end(
        _ token: UInt64, _ key: [UInt8], _ value: (some Encodable)?, _ codec: ModelCodec, _ options: CheckedFetch,
        for server: ServerKind
    ) throws(LarderClientError) -> Request? {
        guard let value else {
            return token == 0 ? nil : .release(key, token: token, .absent(milliseconds: max(1, options.absent)))
        }
        let entry = try NewEntry(value, codec, key, options.policy, options.tags)
        return try entry.request(for: server, if: token == 0 ? [] : wordList("TOKEN", "\(token)"))
    }

    /// Releases a lease.
    /// - Returns: whether the lease was valid.
    static func release(_ key: [UInt8], token: UInt64, _ release: FetchRelease) -> Request {
        var words = [Array("RELEASE".utf8), key, Array("\(token)".utf8)]
        switch release {
        case .open: break
        case .absent(let milliseconds): words += wordList("ABSENT", "\(milliseconds)")
        case .failed(let milliseconds): words += wordList("FAILED", "\(milliseconds)")
        }
        return Request(words, key: key, expects: "OK or null") { reply in
            switch reply {
            case .simpleString("OK"): true
            case .null: false
            default: nil
            }
        }
    }
}
