// Requests about tags.

import RESP

extension Request where Result == [String]? {
    /// The tags of an entry that are text; nil without a fresh entry.
    static func tags(_ key: [UInt8]) -> Request {
        Request([Array("TAGS".utf8), key], key: key, isRead: true, expects: "tags") { reply in
            if reply.isNull { return .some(nil) }
            guard let elements = reply.elements else { return nil }
            let tags = elements.compactMap(\.bytes)
            return tags.count == elements.count ? TagRules.texts(tags) : nil
        }
    }
}

extension Request where Result == Void {
    /// - Parameter words: ``CheckedTags/purged(_:soft:_:)``, at least one.
    static func purge(tags words: [[UInt8]]) -> Request { expectingOK(wordList("PURGE", "TAG") + words) }
}
