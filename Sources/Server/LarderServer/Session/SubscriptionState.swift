import LarderRESP

/// The subscriptions of one connection, and the messages that wait until a reply is complete.
///
/// A value type, owned by its session.
struct SubscriptionState {
    /// Nil for a connection that has never subscribed.
    var names: Subscriptions?
    /// Messages that wait for the reply of the deferred command.
    var behindReply: [PushMessage] = []
    /// Messages of the commands of a transaction, to be published after the transaction was applied.
    var published: [Publication] = []
}

/// The subscriptions of one connection. A value type, owned by its session.
struct Subscriptions {
    private(set) var names: [PubSub.Kind: Set<[UInt8]>] = [:]
    /// The memory use of the names, for the limit.
    private(set) var byteCount = 0

    static func byteCount(_ name: Int) -> Int { name + Limits.subscriptionOverheadBytes }

    func contains(_ name: [UInt8], _ kind: PubSub.Kind) -> Bool { names[kind]?.contains(name) ?? false }

    /// - Returns: whether the name is new.
    mutating func insert(_ name: [UInt8], _ kind: PubSub.Kind) -> Bool {
        guard names[kind, default: []].insert(name).inserted else { return false }
        byteCount += Self.byteCount(name.count)
        return true
    }

    /// - Returns: whether the name existed.
    mutating func remove(_ name: [UInt8], _ kind: PubSub.Kind) -> Bool {
        guard names[kind]?.remove(name) != nil else { return false }
        byteCount -= Self.byteCount(name.count)
        return true
    }

    func all(_ kind: PubSub.Kind) -> [[UInt8]] { names[kind].map(Array.init) ?? [] }

    func count(_ kind: PubSub.Kind) -> Int { names[kind]?.count ?? 0 }

    /// The count in Redis' replies: channels and patterns together, sharded channels separately.
    func shownCount(_ kind: PubSub.Kind) -> Int {
        kind == .shardChannel ? count(kind) : count(.channel) + count(.pattern)
    }

    var isEmpty: Bool { names.values.allSatisfy(\.isEmpty) }
}
