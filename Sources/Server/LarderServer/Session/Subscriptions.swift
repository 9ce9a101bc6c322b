import LarderRESP

/// The subscriptions of one connection, and the messages that wait until a reply is complete.
///
/// A value type, owned by its session.
struct SubscriptionState {
    /// The names of subscribed channels and patterns; nil if there are none.
    var names: Subscriptions?
    /// Messages that are sent after the reply of the deferred command.
    var behindReply: [PushMessage] = []
    /// Messages that the commands of a transaction have published. They are sent after the transaction was applied.
    var published: [Publication] = []
}

/// The subscriptions of one connection. A value type, owned by its session.
struct Subscriptions {
    private(set) var names: [PubSub.Kind: Set<[UInt8]>] = [:]
    /// The memory that the names use, in bytes. It is limited.
    private(set) var byteCount = 0

    static func byteCount(_ name: Int) -> Int { name + Limits.subscriptionOverheadBytes }

    func contains(_ name: [UInt8], _ kind: PubSub.Kind) -> Bool { names[kind]?.contains(name) ?? false }

    /// Adds a name.
    /// - Returns: whether the name is new.
    mutating func insert(_ name: [UInt8], _ kind: PubSub.Kind) -> Bool {
        guard names[kind, default: []].insert(name).inserted else { return false }
        byteCount += Self.byteCount(name.count)
        return true
    }

    /// Removes a name.
    /// - Returns: whether the name was subscribed.
    mutating func remove(_ name: [UInt8], _ kind: PubSub.Kind) -> Bool {
        guard names[kind]?.remove(name) != nil else { return false }
        byteCount -= Self.byteCount(name.count)
        return true
    }

    func all(_ kind: PubSub.Kind) -> [[UInt8]] { names[kind].map(Array.init) ?? [] }

    func count(_ kind: PubSub.Kind) -> Int { names[kind]?.count ?? 0 }

    /// The count that Redis shows in replies: channels and patterns are counted together, sharded channels separately.
    func shownCount(_ kind: PubSub.Kind) -> Int {
        kind == .shardChannel ? count(kind) : count(.channel) + count(.pattern)
    }

    var isEmpty: Bool { names.values.allSatisfy(\.isEmpty) }
}
