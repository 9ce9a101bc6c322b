import LarderPlatform
import LarderQueries
import LarderQuerying

/// The live queries of one connection, and the bytes of their messages that the client has not read yet.
///
/// A client that does not read gets no further messages, and the whole results when it has read the earlier ones.
///
/// `@unchecked Sendable`: `unread` is used by any thread, the other variables by the session's owner.
final class ConnectionQueries: @unchecked Sendable {
    private struct Unread {
        var bytes = 0
        /// Whether messages were refused because of their size.
        var isFull = false
    }

    private let subscriber: Subscriber
    private let record: ClientRecord
    private let unread = Locked(Unread())
    private var handles: [Int: LiveQueryHandle] = [:]
    private var lastID = 0
    /// The bytes of the messages that were added to the output since it was last empty.
    private var outputBytes = 0

    /// The maximum number of live queries of a connection.
    static let queriesMax = 1_000
    /// The size of unread messages above which no further ones are added.
    private static let unreadMax = 1 << 20

    init(_ subscriber: Subscriber, _ record: ClientRecord) { (self.subscriber, self.record) = (subscriber, record) }

    var isEmpty: Bool { handles.isEmpty }

    func newID() throws(CommandError) -> Int {
        guard handles.count < Self.queriesMax else {
            throw CommandError("ERR the connection already has \(Self.queriesMax) live queries: QUERY STOP ends one")
        }
        lastID += 1
        return lastID
    }

    /// Returns the function that sends the events of a query.
    /// - Parameter settings: have the size of unread messages that disconnects the client. A message that would exceed
    ///   it, alone or after others of the same change, ends the query.
    func sink(_ id: Int, positions: Bool, _ settings: Settings) -> LiveSink {
        { [weak self] events in
            let messages = events.indices.map { index in
                PushMessage.live(
                    id, events[index], positions: positions, isLast: index == events.indices.last || !positions)
            }
            let limit = settings.subscriberBytesMax.read()
            let bytesMax = limit / (messages.count > 1 ? 2 : 1)
            let unreadMax = limit > 0 ? min(Self.unreadMax, limit / 2) : Self.unreadMax
            guard bytesMax > 0, let long = messages.first(where: { $0.byteCount > bytesMax }) else {
                return self?.send(messages, unreadMax) ?? true
            }
            let text = "\(long.byteCount) bytes are too many for --max-subscriber-output: use KEYS or LIMIT"
            return self?.send([.live(id, .ended(QueryFailure.refused(text)), positions: positions)], unreadMax) ?? true
        }
    }

    private func send(_ messages: [PushMessage], _ unreadMax: Int) -> Bool {
        let bytes = messages.reduce(0) { $0 + $1.byteCount }
        let isAccepted = unread.withLock { unread in
            let fits = unread.bytes == 0 || unread.bytes + bytes <= unreadMax
            // Later messages may fit, but the query of these ones must be resumed.
            if fits { unread.bytes += bytes } else { unread.isFull = true }
            return fits
        }
        guard isAccepted else { return false }
        for message in messages {
            subscriber.queue.add(PushQueue.Delivery(message: message, connections: [subscriber.id]))
        }
        return true
    }

    // MARK: For the session's owner

    /// Begins to send the differences of a query.
    func add(_ id: Int, _ handle: LiveQueryHandle) {
        handles[id] = handle
        note()
        record.liveBytes.wrappingAdd(handle.byteCount, ordering: .relaxed)
        handle.start()
    }

    /// Returns false if there is no such query.
    func stop(_ id: Int) -> Bool {
        let handle = handles.removeValue(forKey: id)
        handle?.stop()
        note()
        return handle != nil
    }

    func stopAll() {
        guard !isEmpty else { return }
        for handle in handles.values { handle.stop() }
        handles = [:]
        note()
    }

    private func note() { record.liveQueries.store(handles.count, ordering: .relaxed) }

    /// Updates the size of all queries in the record. Costs time for each query.
    func noteBytes() {
        record.liveBytes.store(handles.values.reduce(0) { $0 + $1.byteCount }, ordering: .relaxed)
    }

    /// Whether the client still gets a message. Notes its size.
    func takes(_ message: PushMessage, of id: Int) -> Bool {
        outputBytes += message.byteCount
        if message.endsQuery, handles.removeValue(forKey: id) != nil {
            note()
            return true
        }
        return handles[id] != nil
    }

    /// Called when the client has read its output.
    func didRead() {
        guard outputBytes > 0 else { return }
        let wasFull = unread.withLock { unread in
            unread.bytes -= outputBytes
            defer { unread.isFull = unread.isFull && unread.bytes > 0 }
            return unread.isFull && unread.bytes == 0
        }
        outputBytes = 0
        if wasFull { for handle in handles.values { handle.resume() } }
    }
}
