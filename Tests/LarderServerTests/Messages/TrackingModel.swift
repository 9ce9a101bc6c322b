/// A client that caches the values that it reads, and drops keys for which it gets an invalidation. CLIENT TRACKING
/// guarantees that the client's cache contains no stale value.
struct TrackingModel {
    struct Place: Hashable {
        let database: Int
        let key: String
    }

    /// What a request and its reply mean for the client's cache.
    indirect enum Request {
        case ignore
        /// A read that the daemon tracks for the client if `isTracked` is true.
        case read([Place], isTracked: Bool)
        /// Changes made by the client itself.
        case write([String])
        case transaction([Request])

        var isRead: Bool { if case .read = self { true } else { false } }
    }

    /// A value in RESP3, of the types that occur in these tests.
    indirect enum Reply: Equatable {
        case text(String)
        case null
        case array([Reply])
        case push([Reply])
    }

    struct Broken: Error, CustomStringConvertible { let description: String }

    /// A client with a prefix gets invalidations for all keys with this prefix. Without one, it gets invalidations for
    /// the keys that it has read.
    let prefix: String?
    /// Whether the client is not notified of its own changes.
    let isNoLoop: Bool
    var database = 0
    private(set) var cache: [Place: Reply] = [:]
    /// The keys that the client has read. The daemon may send invalidations only for these.
    private var noted: Set<String> = []
    private var outstanding: [Request] = []

    init(prefix: String? = nil, isNoLoop: Bool) {
        self.prefix = prefix
        self.isNoLoop = isNoLoop
    }

    mutating func send(_ request: Request) { outstanding.append(request) }

    // MARK: Received data

    /// Processes the replies and messages that the daemon has sent.
    mutating func receive(_ text: String) throws {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let reply = try Self.parse(&rest)
            if case .push(let words) = reply {
                try invalidate(words)
                continue
            }
            guard !outstanding.isEmpty else { throw Broken(description: "a reply without a request: \(reply)") }
            try take(reply, outstanding.removeFirst())
        }
    }

    /// Whether all requests have replies.
    var isIdle: Bool { outstanding.isEmpty }

    private mutating func take(_ reply: Reply, _ request: Request) throws {
        switch request {
        case .ignore: break
        case .write(let keys): if isNoLoop { for key in keys { drop(key) } }
        case .read(let places, let isTracked):
            guard isTracked else { return }
            var values = [reply]
            if case .array(let elements) = reply { values = elements }
            guard values.count == places.count else { throw Broken(description: "\(reply) for \(places)") }
            for (place, value) in zip(places, values) {
                noted.insert(place.key)
                if place.key.hasPrefix(prefix ?? "") { cache[place] = value }
            }
        case .transaction(let requests):
            guard case .array(let replies) = reply, replies.count == requests.count else {
                throw Broken(description: "\(reply) for a transaction")
            }
            for (reply, request) in zip(replies, requests) { try take(reply, request) }
        }
    }

    private mutating func invalidate(_ words: [Reply]) throws {
        guard words.count == 2, words[0] == .text("invalidate") else {
            throw Broken(description: "an unexpected message: \(words)")
        }
        guard case .array(let keys) = words[1] else {
            cache = [:]
            return
        }
        for case .text(let key) in keys {
            if let prefix {
                guard key.hasPrefix(prefix) else { throw Broken(description: "notified of \(key), without its prefix") }
            } else {
                guard noted.contains(key) else { throw Broken(description: "notified of \(key), which was not read") }
            }
            drop(key)
        }
    }

    /// Drops the key in all databases, because an invalidation does not name the database.
    private mutating func drop(_ key: String) { for place in cache.keys where place.key == key { cache[place] = nil } }

    // MARK: RESP3

    private static func parse(_ rest: inout ArraySlice<UInt8>) throws -> Reply {
        guard let end = rest.firstIndex(of: 0x0D), let kind = rest.first else {
            throw Broken(description: "half a reply")
        }
        let head = String(decoding: rest[(rest.startIndex + 1)..<end], as: UTF8.self)
        rest = rest[(end + 2)...]
        switch Character(UnicodeScalar(kind)) {
        case "+", ":", "-", "#", ",": return .text(head)
        case "_": return .null
        case "$":
            guard let count = Int(head), count >= 0 else { return .null }
            let text = String(decoding: rest.prefix(count), as: UTF8.self)
            rest = rest.dropFirst(count + 2)
            return .text(text)
        case let kind:
            guard let count = Int(head) else { throw Broken(description: "an unexpected reply: \(kind)\(head)") }
            let elements = try (0..<(kind == "%" ? 2 * count : count)).map { _ in try parse(&rest) }
            return kind == ">" ? .push(elements) : .array(elements)
        }
    }
}
