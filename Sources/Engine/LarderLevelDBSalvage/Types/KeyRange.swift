import LarderLevelDBFormat
import LarderPlatform

/// The keys from `lower` up to but not including `upper`, in byte order.
package struct KeyRange: Hashable, Sendable {
    /// The first key of the range.
    package var lower: [UInt8]
    /// The first key after the range; nil if the range has no upper limit.
    package var upper: [UInt8]?

    package init(lower: [UInt8], upper: [UInt8]?) { (self.lower, self.upper) = (lower, upper) }

    static let everything = KeyRange(lower: [], upper: nil)

    package var isEverything: Bool { lower.isEmpty && upper == nil }

    var isEmpty: Bool {
        guard let upper else { return false }
        return !Self.isLess(lower, upper)
    }

    package func contains(_ key: [UInt8]) -> Bool {
        !Self.isLess(key, lower) && upper.map { Self.isLess(key, $0) } ?? true
    }

    /// Returns the smallest range that contains both ranges.
    func joined(with other: KeyRange) -> KeyRange {
        var joined = Self.isLess(other.lower, lower) ? other : self
        guard let upper, let otherUpper = other.upper else {
            joined.upper = nil
            return joined
        }
        joined.upper = Self.isLess(upper, otherUpper) ? otherUpper : upper
        return joined
    }

    static func isLess(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.withUnsafeBytes { left in right.withUnsafeBytes { ByteOrder.compare(left, $0) < 0 } }
    }

    /// Returns the smallest key that is greater than `key`.
    static func successor(_ key: [UInt8]) -> [UInt8] { key + [0] }

    /// Returns the range without leading and trailing keys that begin with one of these bytes; nil if no keys are left.
    func trimmed(without firstBytes: Set<UInt8>) -> KeyRange? {
        guard !firstBytes.isEmpty else { return isEmpty ? nil : self }
        var trimmed = self
        while let first = trimmed.lower.first, firstBytes.contains(first) {
            guard first < 255 else { return nil }
            trimmed.lower = [first + 1]
        }
        while true {
            // The first byte of the last keys in the range. If `upper` has only one byte, `last` is one less than that
            // byte, because all keys that begin with that byte are after the range.
            let last: UInt8
            if let upper = trimmed.upper {
                guard let first = upper.first else { return nil }
                if upper.count == 1, first == 0 { break }
                last = upper.count > 1 ? first : first - 1
            } else {
                last = 255
            }
            guard firstBytes.contains(last) else { break }
            trimmed.upper = [last]
        }
        return trimmed.isEmpty ? nil : trimmed
    }
}

extension KeyRange: CustomStringConvertible {
    package var description: String {
        if isEverything { return "every key" }
        let lower = lower.isEmpty ? "the first key" : quoted(lower)
        guard let upper else { return "\(lower) to the last key" }
        if upper == Self.successor(self.lower) { return quoted(self.lower) }
        return upper.last == 0
            ? "\(lower) to \(quoted(Array(upper.dropLast())))" : "\(lower) to before \(quoted(upper))"
    }
}

/// A range of keys whose newest state may be lost.
struct Gap {
    /// What is known about the lost versions, to determine whether another version is newer.
    enum Hidden {
        /// The lost versions have at most this sequence.
        case sequences(upTo: UInt64)
        /// The lost versions were in this table. `level` is nil if the table is not in a manifest.
        case table(number: UInt64, level: Int?)
    }

    let range: KeyRange
    let hidden: Hidden
    /// The maximum sequence that lost versions of the range's first key can have; nil if unknown.
    var lowerSequence: UInt64?

    /// Whether the lost versions of a key are all older than its version with this sequence from `origin`.
    func isOlder(than sequence: UInt64, from origin: Origin, isLowerKey: Bool) -> Bool {
        if isLowerKey, let lowerSequence, sequence > lowerSequence { return true }
        switch (hidden, origin) {
        case (.sequences(let last), _): return sequence > last
        // A version in a log is newer than all versions in the manifest's tables. But a table that is not in the
        // manifest may have been made from a log; the log is then newer only if its number is higher.
        case (.table(_, .some), .log): return true
        case (.table(let number, nil), .log(let log)): return log > number
        case (.table(let number, let level?), .table(let otherNumber, let otherLevel?)):
            // In level 0, tables with higher numbers are newer. Otherwise, the table in the level with the lower number
            // is newer.
            return otherLevel < level || level == 0 && otherLevel == 0 && otherNumber > number
        case (.table, .table): return false
        }
    }
}

/// The source of a version.
enum Origin {
    case log(number: UInt64)
    case table(number: UInt64, level: Int?)
}
