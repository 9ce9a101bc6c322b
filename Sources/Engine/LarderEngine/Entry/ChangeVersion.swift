/// The version of a change. Larders that follow each other use versions to order their changes: by time, then by
/// sequence. A change that is passed on keeps its original version.
package struct ChangeVersion: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// When the change was made, by the clock of the larder where it was made, in milliseconds since 1970. If the
    /// change is unknown, the time when the entry was stored.
    package var time: Int64
    /// The commit unit of the change, in the larder where it was made; 0 if unknown.
    package var sequence: UInt64

    package init(time: Int64, sequence: UInt64 = 0) {
        self.time = time
        self.sequence = sequence
    }

    /// Parses the format of ``description``: `time-sequence`, or the time alone.
    package init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let time = Self.number(first), time <= UInt64(Int64.max) else { return nil }
        var sequence: UInt64 = 0
        if parts.count == 2 {
            guard let number = Self.number(parts[1]) else { return nil }
            sequence = number
        }
        self.init(time: Int64(time), sequence: sequence)
    }

    /// Parses a number that consists only of digits.
    static func number(_ text: some StringProtocol) -> UInt64? {
        guard (1...20).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return UInt64(text)
    }

    package var description: String { "\(time)-\(sequence)" }

    /// The next higher version, with the same time.
    var next: ChangeVersion { ChangeVersion(time: time, sequence: sequence == .max ? .max : sequence + 1) }

    package static func < (left: ChangeVersion, right: ChangeVersion) -> Bool {
        (left.time, left.sequence) < (right.time, right.sequence)
    }
}
