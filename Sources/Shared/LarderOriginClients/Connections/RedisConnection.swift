import LarderPlatform
import LarderRESP

/// Commands that are sent together and receive their replies. Confined to the loop.
protocol RedisExchange: AnyObject {
    /// Appends the commands.
    /// - Returns: the number of replies, at least one.
    func encode(into output: inout [UInt8]) -> Int
    /// Receives each of the replies.
    /// - Parameters:
    ///   - skippedBytes: the length of a string in it that was too long; 0 for none.
    ///   - isLast: whether it is the last reply.
    func take(_ reply: RESPValue, skippedBytes: Int, isLast: Bool)
    /// The connection was lost before the last reply.
    func fail(_ error: OriginError)
}

/// The events of a connection. Called on the loop's thread.
protocol RedisConnectionUser: AnyObject {
    /// The server has answered the greeting, so requests can be sent.
    func connectionIsUp(_ connection: RedisConnection)
    /// Keys have changed; nil for all.
    func connection(_ connection: RedisConnection, invalidated keys: [[UInt8]]?)
    /// The connection was lost, and all exchanges have failed. Called once, and not after ``RedisConnection/close()``.
    func connectionEnded(_ connection: RedisConnection, _ error: OriginError)
}

/// One connection to a Redis server: a greeting, exchanges in their order, and push messages.
///
/// Confined to its loop. Close it before releasing it.
final class RedisConnection: OriginSocketUser {
    private let endpoint: OriginEndpoint
    private let greeting: Greeting
    private weak var user: (any RedisConnectionUser)?
    private var socket: OriginSocket?
    private var parser: ReplyParser
    private var pending = Fifo<(exchange: any RedisExchange, missing: Int)>()
    /// True also if TLS is impossible (sockets of this machine), so that the error does not suggest it.
    private let usesTLS: Bool
    private(set) var isUp = false
    private(set) var bytesReceived = 0

    private static let readBytes = 65_536

    init(
        _ loop: OriginLoop, _ endpoint: OriginEndpoint, _ setup: RedisSetup, valueBytes: Int,
        tls: TLSSession?, user: any RedisConnectionUser
    ) {
        self.endpoint = endpoint
        self.user = user
        greeting = Greeting(setup)
        if case .tcp = endpoint { usesTLS = tls != nil } else { usesTLS = true }
        parser = ReplyParser(
            limits: RESPLimits(
                bulkBytesMax: valueBytes, requestBytesMax: max(valueBytes * 2, 64 << 20), elementsMax: 4 << 20),
            skipsLongStrings: true)
        socket = OriginSocket(loop, endpoint, tls: tls, user: self)
    }

    func open() { socket?.open() }

    /// Closes the connection; exchanges under way fail. Idempotent. The user gets no more calls.
    func close(_ error: OriginError) {
        socket?.close()
        socket = nil
        isUp = false
        user = nil
        for entry in pending.takeAll() { entry.exchange.fail(error) }
    }

    /// Closes the connection and notifies its user.
    func end(_ error: OriginError) {
        guard socket != nil else { return }
        let user = user
        close(error)
        user?.connectionEnded(self, error)
    }

    /// Sends an exchange.
    func send(_ exchange: any RedisExchange) {
        guard let socket else { return exchange.fail(.interrupted("\(endpoint): closed")) }
        var count = 0
        socket.write { count = exchange.encode(into: &$0) }
        pending.append((exchange, count))
    }

    /// The bytes that the system has not accepted yet.
    var unsentBytes: Int { socket?.unsentBytes ?? 0 }

    // MARK: The socket

    func socketIsConnected() {
        greeting.finished = { [weak self] error in
            guard let self else { return }
            if let error { return self.end(error) }
            self.isUp = true
            self.user?.connectionIsUp(self)
        }
        send(greeting)
    }

    func socketIsReadable() {
        while let socket {
            let count = socket.receive(parser.writableSpace(atLeast: Self.readBytes))
            guard count > 0 else { return }
            parser.didWrite(count)
            bytesReceived &+= count
            guard readReplies() else { return }
        }
    }

    func socketEnded(_ reason: String) {
        let text = "\(endpoint): \(reason)"
        guard !isUp else { return end(.interrupted(text)) }
        // A TLS server closes connections that start without TLS.
        let isCutOff = !pending.isEmpty && !usesTLS
        end(
            .unreachable(
                text + (isCutOff ? "; if the server requires TLS, use rediss:// instead of redis://" : "")))
    }

    // MARK: Replies

    /// - Returns: whether the connection continues.
    private func readReplies() -> Bool {
        while socket != nil {
            do {
                guard let reply = try parser.next() else { return true }
                if case .push(let words) = reply { hear(words) } else { deliver(reply) }
            } catch {
                let text = "\(endpoint): \(error.message)"
                end(isUp ? .malformed(text) : .unsuitable("\(text): is it a Redis server?"))
            }
        }
        return false
    }

    private func deliver(_ reply: RESPValue) {
        guard let exchange = pending.first?.exchange else {
            // Redis sends the reason before it closes, such as "max number of clients reached".
            return end(
                isUp
                    ? .malformed("\(endpoint): a reply without a request")
                    : .unreachable("\(endpoint): \(reply.errorMessage ?? "a reply without a request")"))
        }
        let isLast =
            pending.changeFirst { entry in
                entry.missing -= 1
                return entry.missing == 0
            } ?? true
        if isLast { _ = pending.popFirst() }
        exchange.take(reply, skippedBytes: parser.skippedBytes, isLast: isLast)
    }

    private func hear(_ words: [RESPValue]) {
        guard words.count == 2, words[0].bytes == Array("invalidate".utf8) else { return }
        if words[1] == .null {
            user?.connection(self, invalidated: nil)
        } else if let keys = words[1].elements {
            user?.connection(self, invalidated: keys.compactMap(\.bytes))
        }
    }
}
