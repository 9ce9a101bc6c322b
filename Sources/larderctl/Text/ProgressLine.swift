import Platform

/// Shows on standard error how far long work has come, if that is a terminal; else says nothing. Single owner.
final class ProgressLine {
    private let isShown = isatty(STDERR_FILENO) == 1
    private let begin = MonotonicClock.milliseconds()
    private var last: Int64 = 0
    private var width = 0

    private static let pauseMilliseconds: Int64 = 100

    /// Call it as often as something changes.
    func show(done: Int, total: Int) {
        let now = MonotonicClock.milliseconds()
        guard isShown, now - last >= Self.pauseMilliseconds else { return }
        last = now
        write(Self.text(done: done, total: total, milliseconds: now - begin))
    }

    /// Percent, what was done, the rate, and the time left.
    static func text(done: Int, total: Int, milliseconds: Int64) -> String {
        guard total > 0, done > 0, milliseconds > 0 else { return "preparing" }
        let share = min(1, Double(done) / Double(total))
        let rate = Double(done) / Double(milliseconds) * 1000
        let left = Int((Double(max(0, total - done)) / rate).rounded(.up))
        let seconds = left % 60
        return "\(Int(share * 100)) %  \(ByteText.short(done)) of \(ByteText.short(total))  "
            + "\(ByteText.short(Int(rate)))/s  \(left / 60):\(seconds < 10 ? "0" : "")\(seconds) left"
    }

    /// Removes the line.
    func end() {
        guard isShown, width > 0 else { return }
        Output.standardError("\r" + String(repeating: " ", count: width) + "\r")
    }

    private func write(_ text: String) {
        Output.standardError("\r" + text + String(repeating: " ", count: max(0, width - text.count)))
        width = text.count
    }
}
