import LarderRESP

/// The subscriptions of one connection, and messages that wait until a reply or a transaction is complete.
///
/// A value type, owned by its session.
struct Subscriptions {
    /// The address of the connection.
    let subscriber: Subscriber
    let queries: ConnectionQueries
    private var names: [PubSub.Kind: Set<[UInt8]>] = [:]
    /// The memory that the names use, in bytes. It is limited.
    private(set) var byteCount = 0
    /// Whether the client has no subscriptions.
    private(set) var isEmpty = true
    /// Messages that are sent after the reply of the deferred command.
    var behindReply: [PushMessage] = []
    /// Messages that the commands of a transaction have published. They are sent after the transaction was applied.
    var published: [Publication] = []

    init(_ subscriber: Subscriber, _ record: ClientRecord) {
        self.subscriber = subscriber
        queries = ConnectionQueries(subscriber, record)
    }

    static func byteCount(_ name: Int) -> Int { name + Limits.subscriptionOverheadBytes }

    /// Adds a name.
    /// - Returns: whether the name is new.
    mutating func insert(_ name: [UInt8], _ kind: PubSub.Kind) -> Bool {
        guard names[kind, default: []].insert(name).inserted else { return false }
        byteCount += Self.byteCount(name.count)
        isEmpty = false
        return true
    }

    /// Removes a name. The client stays a subscriber until ``endIfUnused()`` is called, because messages that are
    /// already published must first be delivered.
    /// - Returns: whether the name was subscribed.
    mutating func remove(_ name: [UInt8], _ kind: PubSub.Kind) -> Bool {
        guard names[kind]?.remove(name) != nil else { return false }
        byteCount -= Self.byteCount(name.count)
        return true
    }

    mutating func endIfUnused() { if byteCount == 0 { (names, isEmpty) = ([:], true) } }

    /// Removes all names.
    mutating func end(in pubsub: PubSub) {
        for kind in PubSub.Kind.allCases {
            for name in all(kind) { pubsub.remove(subscriber, from: name, kind) }
        }
        (names, byteCount, isEmpty) = ([:], 0, true)
    }

    func all(_ kind: PubSub.Kind) -> [[UInt8]] { names[kind].map(Array.init) ?? [] }

    func count(_ kind: PubSub.Kind) -> Int { names[kind]?.count ?? 0 }

    /// The count that Redis shows in replies: channels and patterns are counted together, sharded channels separately.
    func shownCount(_ kind: PubSub.Kind) -> Int {
        kind == .shardChannel ? count(kind) : count(.channel) + count(.pattern)
    }

    /// Copies the counts to the connection's record, where other threads can read them.
    func note(in record: ClientRecord) {
        record.channels.store(count(.channel), ordering: .relaxed)
        record.patterns.store(count(.pattern), ordering: .relaxed)
        record.shardChannels.store(count(.shardChannel), ordering: .relaxed)
    }
}
