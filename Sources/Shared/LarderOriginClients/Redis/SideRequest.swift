import LarderRESP
import LarderWire

/// A request about the server itself, on a separate connection, so that it is not queued after other requests.
///
/// Used on the loop's thread only. Close it before you release it.
final class SideRequest: RedisConnectionUser, RedisExchange {
    typealias Completion = (SideRequest, Result<RESPValue, OriginError>) -> Void

    private let loop: SocketLoop
    private let endpoint: OriginEndpoint
    private let settings: RedisSettings
    private let words: [[UInt8]]
    private var finished: Completion?
    private var connection: RedisConnection?
    private var timer: LoopTimer?

    /// - Parameter finished: called once, at the latest after ``OriginLimits/call``.
    init(
        _ loop: SocketLoop, _ endpoint: OriginEndpoint, _ settings: RedisSettings, _ words: [[UInt8]],
        _ finished: @escaping Completion
    ) {
        self.loop = loop
        self.endpoint = endpoint
        self.settings = settings
        self.words = words
        self.finished = finished
    }

    /// Opens the connection. Call it once.
    func open() {
        let limit = settings.limits.call
        timer = LoopTimer(loop) { [weak self] in self?.end(.failure(.timedOut(milliseconds: limit))) }
        timer?.start(milliseconds: limit)
        var setup = settings.setup
        setup.tracking = .none
        let session = settings.tls?.session(to: endpoint)
        guard settings.tls == nil || session != nil else { return end(.failure(.noTLS(endpoint))) }
        let connection = RedisConnection(
            loop, endpoint, setup.withPassword, valueBytes: settings.limits.valueBytes, tls: session, user: self)
        self.connection = connection
        connection.open()
    }

    /// Closes the connection. May be called repeatedly.
    func close() { end(.failure(.closed)) }

    private func end(_ result: Result<RESPValue, OriginError>) {
        guard let finished else { return }
        self.finished = nil
        timer?.stop()
        timer = nil
        let connection = connection
        self.connection = nil
        connection?.close(.closed)
        finished(self, result)
    }

    func connectionIsUp(_ connection: RedisConnection) { connection.send(self) }
    func connection(_ connection: RedisConnection, invalidated keys: [[UInt8]]?) {}
    func connectionEnded(_ connection: RedisConnection, _ error: OriginError) { end(.failure(error)) }

    func encode(into output: inout [UInt8]) -> Int {
        RequestEncoder.encode(words, into: &output)
        return 1
    }

    func take(_ reply: RESPValue, skippedBytes: Int, isLast: Bool) {
        end(reply.errorMessage.map { .failure(.refused($0)) } ?? .success(reply))
    }

    func fail(_ error: OriginError) { end(.failure(error)) }
}
