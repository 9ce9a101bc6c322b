import LarderCommandCatalog
import LarderEngine
import LarderOriginClients
import LarderRESP

/// Client-side caching (CLIENT TRACKING): the client keeps copies of entries, and the daemon notifies it when they
/// change.
extension Session {
    /// Whether the daemon must remember the keys that the current command reads.
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

    /// Records which keys the command reads or changes. First writes invalidations that must precede the command's
    /// reply.
    func noteUse(_ spec: CommandMetadata, _ start: inout Int) {
        let changed = willUse(spec, count: parser.argumentCount, isAlone: true) { parser.argument($0) }
        guard !changed.isEmpty else { return }
        PushMessage.invalidation(changed, isRedirected: false).write(to: &replies, isSubscriber: false)
        start = replyQueue.position
    }

    /// Records which keys a command is about to read or change.
    /// - Parameters:
    ///   - isAlone: whether a message can precede the command's reply. Within a transaction, this is not possible.
    ///   - word: returns the bytes of one of the command's words.
    /// - Returns: keys of a read that this client has changed itself before. It must receive their invalidations before
    ///   the reply, because the reply contains the new values.
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
        // A unit is the number of a commit. This client's own changes up to `ownUnit` are not reported again when they
        // are committed: it is notified before this reply, or does not want to be (NOLOOP). 0 if it cannot be notified
        // before the reply.
        let ownUnit = isAlone && tracking.redirect == 0 || tracking.isNoLoop ? replyQueue.lastTicket.sequence : 0
        var changed: [[UInt8]] = []
        for index in spec.keyIndices(count: count, word) {
            let key = Array(word(index))
            if server.tracking.willRead(key, tracking, ownUnit: ownUnit) { changed.append(key) }
        }
        return changed
    }

    // MARK: In front of an origin

    /// After a reply, sends invalidations for those of its keys whose next change would not be reported, so that the
    /// client does not keep copies of them. Either the key has changed while it was being read, so its invalidation was
    /// sent before the reply; or the origin sends no invalidations for it.
    /// - Parameter tier: the tier that served the reads; nil if the origin itself executed the command.
    func invalidateUntracked(_ spec: CommandMetadata, _ keys: @autoclosure () -> [[UInt8]], _ tier: OriginTier?) {
        guard let tracking = modes.tracking, spec.flags.contains(.readonly), tracking.isBroadcast || tracksReads else {
            return
        }
        let unheard = keys().filter { key in tier.map { !isTrackedAtOrigin(key, $0) } ?? true }
        if !unheard.isEmpty { server.tracking.notify(unheard, tracking, in: database.name) }
    }

    /// Whether the next change of a key will be reported. Call this after the key was recorded, so that no change is
    /// missed.
    private func isTrackedAtOrigin(_ key: [UInt8], _ tier: OriginTier) -> Bool {
        switch origin.call?.reading(key) {
        case .success(let reading)?: tier.isKnown(reading, of: key)
        case .failure?: false
        case nil: key.withUnsafeBytes { tier.knowledge($0, now: clock.now()) != .nothing }
        }
    }

    /// Ends the effect of CLIENT CACHING, which applies only to the next command or transaction.
    func endCaching(_ spec: CommandMetadata) {
        if modes.caching != nil, transactions.queue == nil, transactions.execution == nil,
            !spec.flags.contains(.preservesClientCaching)
        {
            modes.caching = nil
        }
    }
}
