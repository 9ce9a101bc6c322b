import LarderPlatform

/// Shows on standard error how far long work has come, if that is a terminal; else says nothing. Single owner.
final class ProgressLine {
    /// What is counted.
    enum Unit {
        case bytes, entries

        func text(_ number: Int) -> String {
            switch self {
            case .bytes: ByteText.short(number)
            case .entries: "\(number)"
            }
        }

        /// What follows the last of several numbers.
        var name: String { self == .bytes ? "" : " entries" }
    }

    private let unit: Unit
    private let isShown = isatty(STDERR_FILENO) == 1
    private let begin = MonotonicClock.milliseconds()
    private var last: Int64 = 0
    private var width = 0

    private static let pauseMilliseconds: Int64 = 100

    init(_ unit: Unit = .bytes) { self.unit = unit }

    /// Call it as often as something changes.
    /// - Parameter total: 0 if it is not known.
    func show(done: Int, total: Int) {
        let now = MonotonicClock.milliseconds()
        guard isShown, now - last >= Self.pauseMilliseconds else { return }
        last = now
        write(Self.text(done: done, total: total, milliseconds: now - begin, unit))
    }

    /// Percent, what was done, the rate, and the time left, as far as they are known.
    static func text(done: Int, total: Int, milliseconds: Int64, _ unit: Unit = .bytes) -> String {
        guard done > 0, milliseconds > 0 else { return "preparing" }
        let rate = Double(done) / Double(milliseconds) * 1000
        let speed = "\(unit.text(Int(rate)))/s"
        guard total > 0 else { return "\(unit.text(done))\(unit.name)  \(speed)" }
        let share = min(1, Double(done) / Double(total))
        let left = Int((Double(max(0, total - done)) / rate).rounded(.up))
        let seconds = left % 60
        return "\(Int(share * 100)) %  \(unit.text(done)) of \(unit.text(total))\(unit.name)  \(speed)  "
            + "\(left / 60):\(seconds < 10 ? "0" : "")\(seconds) left"
    }

    /// Removes the line.
    func end() {
        guard isShown, width > 0 else { return }
        Output.writeToStandardError(Array(("\r" + String(repeating: " ", count: width) + "\r").utf8))
        width = 0
    }

    private func write(_ text: String) {
        let line = "\r" + text + String(repeating: " ", count: max(0, width - text.count))
        Output.writeToStandardError(Array(line.utf8))
        width = text.count
    }
}
