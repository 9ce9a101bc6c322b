import LarderCommandCatalog
import LarderEngine

/// Client-side caching (CLIENT TRACKING) of one connection. The client keeps copies of entries, and the daemon notifies
/// the client when these entries change.
///
/// Used only by the owner of its session.
final class TrackingState {
    private let table: Tracking
    private let record: ClientRecord
    /// The client in the server's table; nil if the client does not track keys.
    private(set) var client: TrackingClient?
    /// The setting of CLIENT CACHING for the next command; nil if it was not used.
    var caching: Bool?

    init(_ table: Tracking, _ record: ClientRecord) { (self.table, self.record) = (table, record) }

    /// Whether the daemon must remember the keys that the current command reads.
    var tracksReads: Bool {
        guard let client else { return false }
        switch client.mode {
        case .read: return true
        case .optIn: return caching == true
        case .optOut: return caching != false
        case .broadcast: return false
        }
    }

    /// Whether the keys of each command must be added to the table.
    var isPerKey: Bool { client.map { !$0.isBroadcast } ?? false }

    /// Begins to track with the settings of `client`, or ends tracking if `client` is nil.
    func change(to client: TrackingClient?) {
        if let client {
            self.client = table.add(client)
        } else if let client = self.client {
            table.remove(client)
            self.client = nil
        }
        caching = nil
        record.redirect.store(self.client.map { Int($0.redirect) } ?? -1, ordering: .relaxed)
        record.isBroadcast.store(self.client?.isBroadcast ?? false, ordering: .relaxed)
    }

    /// Records which keys a command is about to read or change.
    /// - Parameters:
    ///   - isAlone: whether a message can precede the command's reply. Within a transaction, this is not possible.
    ///   - previous: the client's latest commit.
    ///   - word: returns the bytes of one of the command's words.
    /// - Returns: the keys that the command reads and that this client itself has changed before. The client must
    ///   receive their invalidations before the reply, because the reply contains the new values.
    @discardableResult
    func willUse(
        _ spec: CommandMetadata, count: Int, isAlone: Bool = false, after previous: CommitTicket,
        _ word: (Int) -> UnsafeRawBufferPointer
    ) -> [[UInt8]] {
        guard let client else { return [] }
        if spec.flags.contains(.write) {
            for index in spec.keyIndices(count: count, word) {
                table.willWrite(Array(word(index)), client, after: previous.sequence)
            }
        }
        guard spec.flags.contains(.readonly), tracksReads else { return [] }
        // `ownUnit` is the number of a commit. This client is not notified of its own changes up to this commit: it
        // gets their invalidations before this reply, or wants none (NOLOOP). Otherwise, `ownUnit` is 0.
        let ownUnit = isAlone && client.redirect == 0 || client.isNoLoop ? previous.sequence : 0
        var changed: [[UInt8]] = []
        for index in spec.keyIndices(count: count, word) {
            let key = Array(word(index))
            if table.willRead(key, client, ownUnit: ownUnit) { changed.append(key) }
        }
        return changed
    }
}
