import CommandCatalog
import LarderEngine
import RESP

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
            server.tracking.add(client)
        } else if let tracking = modes.tracking {
            server.tracking.remove(tracking)
        }
        modes.tracking = client
        modes.caching = nil
        noteMode()
        if client != nil { renewRights() }
    }

    /// Notes the keys that a command is about to read, or to change.
    /// - Parameter word: returns the command's words.
    func willUse(_ spec: CommandMetadata, count: Int, _ word: (Int) -> UnsafeRawBufferPointer) {
        guard let tracking = modes.tracking else { return }
        if tracking.isNoLoop, spec.flags.contains(.write) {
            for index in spec.keyIndices(count: count, word) { server.tracking.willWrite(Array(word(index)), tracking) }
        }
        guard spec.flags.contains(.readonly), tracksReads else { return }
        for index in spec.keyIndices(count: count, word) {
            server.tracking.willRead(Array(word(index)), tracking)
        }
    }

    /// CLIENT CACHING applies to one command, or to the transaction that begins with it.
    func endCaching(_ spec: CommandMetadata) {
        if modes.caching != nil, transactions.queue == nil, transactions.execution == nil,
            !spec.flags.contains(.keepsCaching)
        {
            modes.caching = nil
        }
    }
}
