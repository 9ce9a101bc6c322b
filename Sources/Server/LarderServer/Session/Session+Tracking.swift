import LarderCommandCatalog
import LarderEngine
import LarderOriginClients
import LarderRESP

/// A session whose client keeps copies of what it has read, and is told when an entry changes.
extension Session {
    /// Whether keys that are read are noted.
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

    /// Notes the keys that the parsed command is about to read, or to change, and writes the messages that precede its reply.
    func noteUse(_ spec: CommandMetadata, _ start: inout Int) {
        let changed = willUse(spec, count: parser.argumentCount, isAlone: true) { parser.argument($0) }
        guard !changed.isEmpty else { return }
        PushMessage.invalidation(changed, isRedirected: false).write(to: &replies, isSubscriber: false)
        start = replyQueue.position
    }

    /// Notes the keys that a command is about to read, or to change.
    /// - Parameters:
    ///   - isAlone: whether a message can be sent before the command's reply, which is not so within a transaction.
    ///   - word: returns the command's words.
    /// - Returns: keys that this client has changed before. It must be notified of them before the command's reply, which has
    ///   their new values.
    @discardableResult
    func willUse(
        _ spec: CommandMetadata, count: Int, isAlone: Bool = false, _ word: (Int) -> UnsafeRawBufferPointer
    ) -> [[UInt8]] {
        guard let tracking = modes.tracking else { return [] }
        if spec.flags.contains(.write) {
            for index in spec.keyIndices(count: count, word) { server.tracking.willWrite(Array(word(index)), tracking) }
        }
        guard spec.flags.contains(.readonly), tracksReads else { return [] }
        // Only a reader that can be notified at once, or does not want to be, may be left out when the change is committed.
        let ownUnit = isAlone && tracking.redirect == 0 || tracking.isNoLoop ? replyQueue.lastTicket.sequence : 0
        var changed: [[UInt8]] = []
        for index in spec.keyIndices(count: count, word) {
            let key = Array(word(index))
            if server.tracking.willRead(key, tracking, ownUnit: ownUnit) { changed.append(key) }
        }
        return changed
    }

    // MARK: Before an origin

    /// Tells the client, behind a reply, of what it has read there without a promise to hear of its next change: it must not
    /// keep that. So it is if the key has changed since the origin was asked, which was told before the reply, and if the
    /// origin says nothing of the key.
    /// - Parameter tier: whose knowledge was served, with the readings of this command; nil if the origin itself has answered.
    func tellUnheard(_ spec: CommandMetadata, _ keys: @autoclosure () -> [[UInt8]], _ tier: OriginTier?) {
        guard let tracking = modes.tracking, spec.flags.contains(.readonly), tracking.isBroadcast || tracksReads else {
            return
        }
        let unheard = keys().filter { key in tier.map { !isHeard(key, $0) } ?? true }
        if !unheard.isEmpty { server.tracking.tell(unheard, tracking, in: database.name) }
    }

    /// Whether a change from now on would be told. Called when the key is noted: what is known then is heard of behind that.
    private func isHeard(_ key: [UInt8], _ tier: OriginTier) -> Bool {
        switch origin.call?.reading(key) {
        case .success(let reading)?: tier.isKnown(reading, of: key)
        case .failure?: false
        case nil: key.withUnsafeBytes { tier.knowledge($0, now: clock.now()) != .nothing }
        }
    }

    /// CLIENT CACHING applies to one command, or to the transaction that begins with it. One that waits runs again.
    func endCaching(_ spec: CommandMetadata) {
        if modes.caching != nil, transactions.queue == nil, transactions.execution == nil,
            !spec.flags.contains(.keepsCaching)
        {
            modes.caching = nil
        }
    }
}
