import LarderPlatform

/// Shows the progress of long work on standard error if that is a terminal. For one thread at a time.
final class ProgressLine {
    enum Unit { case bytes, entries }

    private let unit: Unit
    private let isShown = isatty(STDERR_FILENO) == 1
    private let begin = MonotonicClock.milliseconds()
    private var last: Int64 = 0
    private var width = 0

    private static let pauseMilliseconds: Int64 = 100

    init(_ unit: Unit = .bytes) { self.unit = unit }

    /// Shows the progress. May be called for each change: it writes at most once every 100 milliseconds.
    /// - Parameter total: the total amount; 0 if unknown.
    func show(done: Int, total: Int) {
        let now = MonotonicClock.milliseconds()
        guard isShown, now - last >= Self.pauseMilliseconds else { return }
        last = now
        write(Self.text(done: done, total: total, milliseconds: now - begin, unit))
    }

    /// Returns the line: the amount and the rate, and the percentage and the remaining time if the total is known.
    static func text(done: Int, total: Int, milliseconds: Int64, _ unit: Unit = .bytes) -> String {
        guard done > 0, milliseconds > 0 else { return "preparing" }
        func text(_ number: Int) -> String { unit == .bytes ? NumberText.bytes(number) : "\(number)" }
        let name = unit == .bytes ? "" : " entries"
        let rate = Double(done) / Double(milliseconds) * 1000
        let speed = "\(text(Int(rate)))/s"
        guard total > 0 else { return "\(text(done))\(name)  \(speed)" }
        let share = min(1, Double(done) / Double(total))
        let left = Int((Double(max(0, total - done)) / rate).rounded(.up))
        return "\(Int(share * 100)) %  \(text(done)) of \(text(total))\(name)  \(speed)  "
            + "\(left / 60):\((left % 60).zeroPadded(2)) left"
    }

    /// Clears the line.
    func end() {
        guard isShown, width > 0 else { return }
        Output.writeToStandardError(Array(("\r" + String(repeating: " ", count: width) + "\r").utf8))
        width = 0
    }

    private func write(_ text: String) {
        Output.writeToStandardError(Array(("\r" + text.padded(width)).utf8))
        width = text.count
    }
}
