// Requests about tags.

import LarderRESP

extension Request where Result == [String]? {
    /// Returns those tags of an entry that are text; nil if there is no fresh entry.
    static func tags(_ key: [UInt8]) -> Request {
        Request([Array("TAGS".utf8), key], key: key, isRead: true, expects: "tags") { reply in
            tagList(reply).map { $0.map(TagRules.texts) }
        }
    }
}

extension Request where Result == [[UInt8]]? {
    /// Returns all tags of an entry; nil without a fresh entry.
    static func tagBytes(_ key: [UInt8]) -> Request {
        Request([Array("TAGS".utf8), key], key: key, isRead: true, expects: "tags") { tagList($0) }
    }
}

/// Reads the reply to `TAGS`.
/// - Returns: the tags of an entry; an inner nil if there is no entry; an outer nil for a reply of an unexpected form.
private func tagList(_ reply: RESPValue) -> [[UInt8]]?? {
    if reply.isNull { return .some(nil) }
    guard let elements = reply.elements else { return nil }
    let tags = elements.compactMap(\.bytes)
    return tags.count == elements.count ? tags : nil
}

extension Request where Result == Void {
    /// Removes the entries with some tags.
    /// - Parameter words: the result of ``CheckedTags/purged(_:soft:_:)``, at least one word.
    static func purge(tags words: [[UInt8]]) -> Request { expectingOK(wordList("PURGE", "TAG") + words) }
}
