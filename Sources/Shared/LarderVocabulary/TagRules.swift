/// The limits for the tags of entries.
package enum TagRules {
    /// The maximum number of tags of one entry.
    package static let countMax = 16
    /// The maximum length of a tag in bytes.
    package static let bytesMax = 128
    /// The maximum number of tags in one purge.
    package static let purgedMax = 1024

    /// The error for invalid tags.
    package struct Impossible: Error {
        package let message: String

        package init(message: String) { self.message = message }
    }

    /// Checks the tags of one entry, and removes duplicates.
    package static func checked(_ tags: some Collection<[UInt8]>) throws(Impossible) -> [[UInt8]] {
        var seen: [[UInt8]] = []
        for tag in tags where !seen.contains(tag) {
            try check(tag)
            seen.append(tag)
        }
        guard seen.count <= countMax else {
            throw Impossible(message: "an entry can have at most \(countMax) tags, not \(seen.count)")
        }
        return seen
    }

    package static func check(_ tag: [UInt8]) throws(Impossible) {
        guard (1...bytesMax).contains(tag.count) else {
            throw Impossible(message: "a tag must have 1 to \(bytesMax) bytes, not \(tag.count)")
        }
        if tag.contains(0) { throw Impossible(message: "a tag must not contain a NUL byte") }
    }

    /// Checks the tags of one purge, and removes duplicates.
    package static func checkedForPurge(_ tags: [[UInt8]]) throws(Impossible) -> [[UInt8]] {
        for tag in tags { try check(tag) }
        var seen: Set<[UInt8]> = []
        let tags = tags.filter { seen.insert($0).inserted }
        guard tags.count <= purgedMax else {
            throw Impossible(message: "at most \(purgedMax) tags can be purged at once, not \(tags.count)")
        }
        return tags
    }

    /// Returns tags as text. Omits tags that are not UTF-8.
    package static func texts(_ tags: [[UInt8]]) -> [String] {
        tags.compactMap { String(validating: $0, as: UTF8.self) }
    }
}
