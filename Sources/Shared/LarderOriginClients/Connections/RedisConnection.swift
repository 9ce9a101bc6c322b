import LarderPlatform
import LarderRESP
import LarderWire

/// Commands that are sent together, and the code that receives their replies. Used on the loop's thread only.
protocol RedisExchange: AnyObject {
    /// Appends the encoded commands.
    /// - Returns: the number of replies to expect, at least one.
    func encode(into output: inout [UInt8]) -> Int
    /// Receives one reply.
    /// - Parameters:
    ///   - skippedBytes: the length of a string that was too long and therefore dropped; 0 if there was none.
    ///   - isLast: whether it is the last reply of this exchange.
    func take(_ reply: RESPValue, skippedBytes: Int, isLast: Bool)
    /// Called if the connection is lost before the last reply.
    func fail(_ error: OriginError)
}

/// Receives the events of a connection. Called on the loop's thread.
protocol RedisConnectionUser: AnyObject {
    /// The greeting has succeeded, so requests can be sent.
    func connectionIsUp(_ connection: RedisConnection)
    /// The server has reported that keys have changed; nil means that any key may have changed.
    func connection(_ connection: RedisConnection, invalidated keys: [[UInt8]]?)
    /// The connection was lost, and all pending exchanges have failed. Called at most once, and not after
    /// ``RedisConnection/close(_:)``.
    func connectionEnded(_ connection: RedisConnection, _ error: OriginError)
}

/// A connection to a Redis server. Sends the greeting and then exchanges. Receives replies and push messages.
///
/// Used on the loop's thread only. Close it before you release it.
final class RedisConnection: OriginSocketUser {
    private let endpoint: OriginEndpoint
    private let greeting: Greeting
    private weak var user: (any RedisConnectionUser)?
    private var socket: OriginSocket?
    private var parser: ReplyParser
    private var pending = Deque<(exchange: any RedisExchange, missing: Int)>()
    /// Whether TLS is used. Also true for Unix-domain sockets, for which error messages must not suggest TLS.
    private let usesTLS: Bool
    private(set) var isUp = false
    private(set) var bytesReceived = 0

    private static let readBytes = 65_536

    init(
        _ loop: SocketLoop, _ endpoint: OriginEndpoint, _ setup: RedisSetup, valueBytes: Int,
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

    /// Closes the connection. Pending exchanges fail; the user is not called any more. May be called repeatedly.
    func close(_ error: OriginError) {
        socket?.close()
        socket = nil
        isUp = false
        user = nil
        for entry in pending.takeAll() { entry.exchange.fail(error) }
    }

    /// Like ``close(_:)``, and notifies the user.
    func end(_ error: OriginError) {
        guard socket != nil else { return }
        let user = user
        close(error)
        user?.connectionEnded(self, error)
    }

    /// Sends the commands of an exchange.
    func send(_ exchange: any RedisExchange) {
        guard let socket else { return exchange.fail(.interrupted("\(endpoint): closed")) }
        var count = 0
        socket.write { count = exchange.encode(into: &$0) }
        pending.append((exchange, count))
    }

    /// The number of bytes that the system has not accepted yet.
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
        // If a request was pending, the server may require TLS: such servers close connections without TLS.
        let isCutOff = !pending.isEmpty && !usesTLS
        end(
            .unreachable(
                text + (isCutOff ? "; if the server requires TLS, use rediss:// instead of redis://" : "")))
    }

    // MARK: Replies

    /// Handles all complete replies and push messages.
    /// - Returns: whether the connection is still open.
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
        guard let (exchange, expected) = pending.popFirst() else {
            // Before Redis closes a rejected connection, it sends the reason, such as "max number of clients reached".
            return end(
                isUp
                    ? .malformed("\(endpoint): a reply without a request")
                    : .unreachable("\(endpoint): \(reply.errorMessage ?? "a reply without a request")"))
        }
        let missing = expected - 1
        if missing > 0 { pending.pushFront((exchange, missing)) }
        exchange.take(reply, skippedBytes: parser.skippedBytes, isLast: missing == 0)
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
