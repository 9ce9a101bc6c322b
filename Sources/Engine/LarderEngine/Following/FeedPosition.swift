/// A reader's position in a database's changes. Its text form is one word, which the reader passes back unchanged in
/// its next request.
///
/// ```
/// 0                      begin with a full pass
/// $                      only changes from now on
/// 4611686018427387999    after a commit unit of the current feed
/// FEED:UNIT.STEP         after a change
/// FEED:UNIT.STEP:-       the same, and a full pass that has not begun
/// FEED:UNIT.STEP:HEX     the same, and a full pass that has reached this key
/// ```
package struct FeedPosition: Hashable, Sendable, CustomStringConvertible {
    package enum Start: Hashable, Sendable {
        case beginning
        case end
        /// - Parameter feed: the ID of the change log that the place belongs to; nil for the current one.
        case behind(feed: UInt64?, ChangePlace)
    }

    /// The progress of a full pass.
    package enum Pass: Hashable, Sendable {
        case notBegun
        case through([UInt8])

        var after: [UInt8]? { if case .through(let key) = self { key } else { nil } }
    }

    package var start: Start
    /// The progress of the full pass; nil if none is under way.
    package var pass: Pass?

    package static let beginning = FeedPosition(start: .beginning)
    package static let end = FeedPosition(start: .end)

    package init(start: Start, pass: Pass? = nil) { (self.start, self.pass) = (start, pass) }

    package init(feed: UInt64, _ place: ChangePlace, _ pass: Pass? = nil) {
        self.init(start: .behind(feed: feed, place), pass: pass)
    }

    /// The maximum length of the text, in bytes.
    package static let textBytesMax = 64 + 2 * Key.bytesMax

    /// - Returns: nil if the text is not a position.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.textBytesMax else { return nil }
        switch text {
        case "0": self = .beginning
        case "$": self = .end
        default:
            let parts = text.split(separator: ":", omittingEmptySubsequences: false)
            if parts.count == 1 {
                guard let sequence = ChangeVersion.number(text) else { return nil }
                // All changes of the unit have been read.
                self.init(start: .behind(feed: nil, ChangePlace(sequence, .max)))
                return
            }
            guard parts.count <= 3, parts[0].utf8.count == 16, let feed = UInt64(parts[0], radix: 16), feed > 0,
                let place = Self.place(parts[1])
            else { return nil }
            self.init(feed: feed, place)
            guard parts.count == 3 else { return }
            if parts[2] == "-" {
                pass = .notBegun
            } else {
                guard let key = Self.bytes(hex: parts[2].utf8), key.count <= Key.bytesMax else { return nil }
                pass = .through(key)
            }
        }
    }

    private static func place(_ text: Substring) -> ChangePlace? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let sequence = ChangeVersion.number(parts[0]),
            let step = ChangeVersion.number(parts[1]), step <= UInt64(Int.max)
        else { return nil }
        return ChangePlace(sequence, Int(step))
    }

    private static func bytes(hex: Substring.UTF8View) -> [UInt8]? {
        guard hex.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(hex.count / 2)
        var high: UInt8?
        for digit in hex {
            let value: UInt8
            switch digit {
            case 0x30...0x39: value = digit - 0x30
            case 0x61...0x66: value = digit - 0x61 + 10
            default: return nil
            }
            if let first = high {
                bytes.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return bytes
    }

    package var description: String {
        switch start {
        case .beginning: return "0"
        case .end: return "$"
        case .behind(nil, let place): return "\(place.sequence)"
        case .behind(let feed?, let place):
            let hex = String(feed, radix: 16)
            let text = String(repeating: "0", count: 16 - hex.count) + hex + ":\(place.sequence).\(place.step)"
            switch pass {
            case nil: return text
            case .notBegun: return text + ":-"
            case .through(let key): return text + ":" + Self.hex(key)
            }
        }
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        text.reserveCapacity(2 * bytes.count)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}
