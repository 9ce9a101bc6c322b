// Requests of callers that fetch missing values.

import LarderFetching
import LarderRESP

/// The reply to FETCH.
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

    /// Whether the value returned with a lease is still fresh.
    var isFresh: Bool { value != nil && left != 0 }

    /// Returns whether the value is at most `maxAge` milliseconds old. Always true for nil, and false for 0.
    func isYoung(_ maxAge: Int64?) -> Bool { maxAge.map { $0 > 0 && age <= $0 } ?? true }
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
            return FetchAnswer(state: state, value: parts[1].bytes, token: token ?? 0, age: age, left: left)
        }
    }
}

extension Request where Result == Bool {
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
