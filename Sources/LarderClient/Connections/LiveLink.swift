import LarderPlatform
import LarderQueries
import LarderRESP
import LarderWire

/// A live query of a daemon, on a connection of its own. After a loss, it reconnects and begins the query again.
///
/// Thread-safe. `@unchecked Sendable`: mutable properties are guarded by `lock`.
final class LiveLink: LinkEvents, @unchecked Sendable {
    private let link: Link
    private let words: [[UInt8]]
    private let sink: LiveSink
    private let lock = Lock()
    /// The number of the query on the present connection; nil while there is none, or its messages are dropped.
    private var id: Int64?
    /// The number of the query whose messages were dropped.
    private var oldID: Int64?
    private var hasBegun = false
    /// The events of a change whose last message has not arrived.
    private var incomplete: [LiveEvent] = []
    private var first: Promise<Result<Void, LarderClientError>>? = Promise()

    /// - Parameter words: the command QUERY LIVE.
    init(
        _ socketPath: String, _ options: ClientOptions, _ store: DatabaseStore, _ words: [[UInt8]],
        _ sink: @escaping LiveSink
    ) {
        var settings = LinkSettings(socketPath, options, database: store.database)
        settings.staysConnected = true
        link = Link(settings)
        (self.words, self.sink) = (words, sink)
        link.attach(self)
    }

    /// Begins the query: the sink gets the result first.
    func begin() async throws(LarderClientError) {
        guard let first = lock.withLock({ first }) else { return }
        try await link.connected()
        lock.withLock { hasBegun = true }
        submit()
        try await withTaskCancellationHandler {
            await first.value()
        } onCancel: {
            end(LarderClientError(.cancelled, "the task was cancelled", operation: "QUERY"))
        }.get()
    }

    /// Begins the query again, because messages were dropped.
    func resume() { submit() }

    /// Ends the query. The sink gets the error, or the end.
    func end(_ error: LarderClientError?) {
        link.close()
        let first = lock.withLock {
            id = nil
            return self.first.take()
        }
        let closed = LarderClientError(.closed, "the client was closed", operation: "QUERY")
        first?.set(.failure(error ?? closed))
        _ = sink([.ended(error)])
    }

    /// Sends the query on the present connection. If that is lost, ``linkIsReady(_:)`` sends it again.
    private func submit() {
        let old = lock.withLock { oldID.take() }
        let stop = old.map { [wordList("QUERY", "STOP", "\($0)")] } ?? []
        let number = link.currentNumber
        let exchange = Exchange(stop + [words], name: words[0], connectionNumber: number)
        link.submit(exchange, .closure { [weak self] outcome in self?.take(outcome, number) })
    }

    // MARK: On the loop's thread

    private func take(_ outcome: Exchange.Outcome, _ connection: Int) {
        let reply: RESPValue
        switch outcome {
        case .success(let replies): reply = replies.last ?? .null
        case .failure(let failure):
            // After a loss of the connection, the query begins again.
            guard link.isConnected(connection) else { return }
            let (path, limit) = (link.settings.socketPath, link.settings.timeoutMilliseconds)
            return end(failure.error(socketPath: path, operation: "QUERY", limit: limit))
        }
        if let text = reply.errorMessage { return end(.server(text, operation: "QUERY")) }
        guard let parts = reply.elements, parts.count == 2, let id = parts[0].int, let rows = Self.rows(parts[1]) else {
            return end(.unexpectedReply(to: "QUERY LIVE", "a number and rows"))
        }
        let first = lock.withLock {
            self.id = id
            return self.first.take()
        }
        _ = sink([.reset(rows)])
        first?.set(.success(()))
    }

    private static func rows(_ reply: RESPValue) -> [LiveRow]? {
        guard let elements = reply.elements else { return nil }
        let rows = elements.compactMap { row -> LiveRow? in
            guard let fields = row.elements, fields.count == 2, let key = fields[0].bytes else { return nil }
            return LiveRow(key: key, text: fields[1].bytes)
        }
        return rows.count == elements.count ? rows : nil
    }

    func linkIsReady(_ link: Link) { if lock.withLock({ hasBegun }) { submit() } }

    func linkWasLost(_ link: Link) { lock.withLock { (id, oldID, incomplete) = (nil, nil, []) } }

    func link(_ link: Link, pushed message: [RESPValue]) {
        let continues = message.continues
        let message = continues ? message.dropLast() : message
        guard message.count >= 4, message[0].string == "live", let id = message[1].int,
            lock.withLock({ self.id == id })
        else { return }
        let event: LiveEvent
        switch (message[2].string, message[3].bytes, message.count) {
        case ("set", let key?, 6):
            event = .set(LiveRow(key: key, text: message[4].bytes), index: Int(clamping: message[5].int ?? 0))
        case ("out", let key?, 5):
            event = .out(key: key, message[4].string.flatMap { LiveReason(rawValue: $0) } ?? .removed)
        case ("reset", nil, 4):
            guard let rows = Self.rows(message[3]) else { return }
            event = .reset(rows)
        case ("end", _?, 4): return end(.server(message[3].string ?? "", operation: "QUERY"))
        default: return
        }
        let events = lock.withLock {
            incomplete.append(event)
            if continues { return [LiveEvent]() }
            return exchange(&incomplete, with: [])
        }
        guard !events.isEmpty, !sink(events) else { return }
        // The messages are dropped until the reader requests the result.
        lock.withLock { (self.id, oldID) = (nil, id) }
    }
}

extension [RESPValue] {
    /// Whether this message of a live query ends with the mark that another one of the same change follows.
    package var continues: Bool { count > 4 && last?.string == "more" }
}
