/// Why an entry is no longer in the result of a live query.
public enum LiveReason: String, Sendable {
    /// The entry was stored again, and does not match any more.
    case changed
    /// The entry was removed.
    case removed
    /// The entry has expired.
    case expired
    /// The entry was evicted because of the disk limit.
    case evicted
    /// The database, a key prefix or a tag of the entry was purged.
    case purged
    /// The entry still matches, and its position is outside of the result.
    case moved
}

package struct LiveRow: Sendable {
    package let key: [UInt8]
    /// The text of the entry; nil if the query has KEYS.
    package let text: [UInt8]?

    package init(key: [UInt8], text: [UInt8]?) { (self.key, self.text) = (key, text) }
}

/// What a live query sends to its reader. The events apply one after the other.
package enum LiveEvent: Sendable {
    case out(key: [UInt8], LiveReason)
    /// The row is removed, if it was in the result, and inserted at the index.
    case set(LiveRow, index: Int)
    /// The whole result: at the beginning, and after events that were not sent.
    case reset([LiveRow])
    /// No event follows. Nil: the reader's database was closed.
    case ended((any Error)?)
}

/// Passes events to the reader of a live query. Called by one thread at a time. Must return quickly.
/// - Returns: false if the reader is slow. The events are then dropped, and a reset follows when the reader requests it.
package typealias LiveSink = @Sendable ([LiveEvent]) -> Bool
