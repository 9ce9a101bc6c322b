/// Lets one line through in a while, and counts the others.
struct LineRate {
    private let milliseconds: Int64
    private var last: Int64 = .min / 2
    private var skipped = 0

    init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// - Parameter monotonic: now, in milliseconds of the monotonic clock.
    /// - Returns: how many lines were left out since the last one; nil if this one is to be left out.
    mutating func line(at monotonic: Int64) -> Int? {
        guard monotonic - last >= milliseconds else {
            skipped += 1
            return nil
        }
        last = monotonic
        defer { skipped = 0 }
        return skipped
    }

    /// What a line says of those that were left out.
    static func rest(_ skipped: Int, _ what: String) -> String {
        skipped > 0 ? "; \(skipped) more \(what) since the last line" : ""
    }
}
