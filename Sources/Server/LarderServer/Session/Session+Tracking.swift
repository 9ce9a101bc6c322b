import LarderCommandCatalog
import LarderEngine
import LarderOriginClients
import LarderRESP

/// Client-side caching: the client keeps copies of entries and is notified when they change.
extension Session {
    /// Whether keys that are read are tracked.
    var tracksReads: Bool {
        guard let tracking = modes.tracking else { return false }
        switch tracking.mode {
        case .read: return true
        case .optIn: return modes.caching == true
        case .optOut: return modes.caching != false
        case .broadcast: return false
        }
    }

    func track(_ client: TrackingClient?) {
        if let client {
            modes.tracking = server.tracking.add(client)
        } else if let tracking = modes.tracking {
            server.tracking.remove(tracking)
            modes.tracking = nil
        }
        modes.caching = nil
        noteMode()
        if client != nil { renewRights() }
    }

    /// Records the keys that the parsed command is about to read or change, and writes the messages that precede its
    /// reply.
    func noteUse(_ spec: CommandMetadata, _ start: inout Int) {
        let changed = willUse(spec, count: parser.argumentCount, isAlone: true) { parser.argument($0) }
        guard !changed.isEmpty else { return }
        PushMessage.invalidation(changed, isRedirected: false).write(to: &replies, isSubscriber: false)
        start = replyQueue.position
    }

    /// Records the keys that a command is about to read or change.
    /// - Parameters:
    ///   - isAlone: whether a message can precede the command's reply, which is not possible within a transaction.
    ///   - word: returns the command's words.
    /// - Returns: keys that this client has changed before. It must be notified of them before the command's reply,
    ///   which contains their new values.
    @discardableResult
    func willUse(
        _ spec: CommandMetadata, count: Int, isAlone: Bool = false, _ word: (Int) -> UnsafeRawBufferPointer
    ) -> [[UInt8]] {
        guard let tracking = modes.tracking else { return [] }
        if spec.flags.contains(.write) {
            let previousUnit = replyQueue.lastTicket.sequence
            for index in spec.keyIndices(count: count, word) {
                server.tracking.willWrite(Array(word(index)), tracking, after: previousUnit)
            }
        }
        guard spec.flags.contains(.readonly), tracksReads else { return [] }
        // The client's own changes until this unit need no notification when they are committed: it is notified
        // before this reply, or does not want to be (NOLOOP). 0 if it cannot be notified before this reply.
        let ownUnit = isAlone && tracking.redirect == 0 || tracking.isNoLoop ? replyQueue.lastTicket.sequence : 0
        var changed: [[UInt8]] = []
        for index in spec.keyIndices(count: count, word) {
            let key = Array(word(index))
            if server.tracking.willRead(key, tracking, ownUnit: ownUnit) { changed.append(key) }
        }
        return changed
    }

    // MARK: In front of an origin

    /// Invalidates the keys of a reply for whose changes no invalidation will arrive, so that the client does not cache
    /// them. Call it after the reply. Such a key has changed since its read was requested, which was notified before
    /// the reply, or the origin sends no invalidations for it.
    /// - Parameter tier: the tier that served the reads, including the replies for this command; nil if the origin
    ///   replied itself.
    func notifyUnheard(_ spec: CommandMetadata, _ keys: @autoclosure () -> [[UInt8]], _ tier: OriginTier?) {
        guard let tracking = modes.tracking, spec.flags.contains(.readonly), tracking.isBroadcast || tracksReads else {
            return
        }
        let unheard = keys().filter { key in tier.map { !isHeard(key, $0) } ?? true }
        if !unheard.isEmpty { server.tracking.notify(unheard, tracking, in: database.name) }
    }

    /// Whether an invalidation will arrive when the key changes. Call it after the key was recorded, so that no change
    /// is missed.
    private func isHeard(_ key: [UInt8], _ tier: OriginTier) -> Bool {
        switch origin.call?.reading(key) {
        case .success(let reading)?: tier.isKnown(reading, of: key)
        case .failure?: false
        case nil: key.withUnsafeBytes { tier.knowledge($0, now: clock.now()) != .nothing }
        }
    }

    /// Ends the effect of CLIENT CACHING, which applies to the next command, or to the transaction that it starts.
    func endCaching(_ spec: CommandMetadata) {
        if modes.caching != nil, transactions.queue == nil, transactions.execution == nil,
            !spec.flags.contains(.keepsCaching)
        {
            modes.caching = nil
        }
    }
}
