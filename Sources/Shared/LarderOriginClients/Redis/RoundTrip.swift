import LarderRESP
import LarderWire

/// A PING that waits for pending invalidations: its reply arrives after all invalidations that the server has sent
/// before it. Used on the loop's thread only.
final class RoundTrip: RedisExchange {
    private var finished: (() -> Void)?
    private var timer: LoopTimer?

    /// - Parameters:
    ///   - limit: the timeout in milliseconds.
    ///   - finished: called once: after the reply, the timeout or the loss of the connection.
    init(_ loop: SocketLoop, limit: Int, _ finished: @escaping () -> Void) {
        self.finished = finished
        timer = LoopTimer(loop) { [weak self] in self?.end() }
        timer?.start(milliseconds: limit)
    }

    func encode(into output: inout [UInt8]) -> Int {
        RequestEncoder.encode([Words.ping], into: &output)
        return 1
    }

    func take(_ reply: RESPValue, skippedBytes: Int, isLast: Bool) { end() }

    /// The connection was lost. Report no error, because the loss ends the epoch anyway.
    func fail(_ error: OriginError) { end() }

    private func end() {
        timer?.stop()
        timer = nil
        let finished = finished
        self.finished = nil
        finished?()
    }
}
