import LarderRESP

/// A request whose reply arrives after all invalidations that the server had sent before. Confined to the loop.
final class RoundTrip: RedisExchange {
    private var finished: (() -> Void)?
    private var timer: LoopTimer?

    /// - Parameters:
    ///   - limit: the timeout in milliseconds.
    ///   - finished: called once, also after the timeout.
    init(_ loop: OriginLoop, limit: Int, _ finished: @escaping () -> Void) {
        self.finished = finished
        timer = LoopTimer(loop) { [weak self] in self?.end() }
        timer?.start(milliseconds: limit)
    }

    func encode(into output: inout [UInt8]) -> Int {
        RequestEncoder.encode([Words.ping], into: &output)
        return 1
    }

    func take(_ reply: RESPValue, skippedBytes: Int, isLast: Bool) { end() }

    /// The connection is lost, so its epoch ends anyway.
    func fail(_ error: OriginError) { end() }

    private func end() {
        timer?.close()
        timer = nil
        let finished = finished
        self.finished = nil
        finished?()
    }
}
