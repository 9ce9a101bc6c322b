import LarderPlatform

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
                guard let key = HexText.bytes(String(parts[2])), HexText.text(key) == parts[2],
                    key.count <= Key.bytesMax
                else { return nil }
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

    package var description: String {
        switch start {
        case .beginning: return "0"
        case .end: return "$"
        case .behind(nil, let place): return "\(place.sequence)"
        case .behind(let feed?, let place):
            let text = feed.hexadecimal() + ":\(place.sequence).\(place.step)"
            switch pass {
            case nil: return text
            case .notBegun: return text + ":-"
            case .through(let key): return text + ":" + HexText.text(key)
            }
        }
    }
}
