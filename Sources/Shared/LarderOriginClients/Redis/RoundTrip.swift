import LarderRESP

/// A question behind whose answer everything is heard that the server had said before. Confined to the loop.
final class RoundTrip: RedisExchange {
    private var finished: (() -> Void)?
    private var timer: LoopTimer?

    /// - Parameters:
    ///   - limit: in milliseconds; then it is over, too.
    ///   - finished: called once.
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

    /// Nothing that it has said before is believed any more.
    func fail(_ error: OriginError) { end() }

    private func end() {
        timer?.close()
        timer = nil
        let finished = finished
        self.finished = nil
        finished?()
    }
}
