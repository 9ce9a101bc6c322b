import LarderRESP

/// Reads the entries of a daemon's databases in the order of their keys, in steps of up to 1000. A reader can continue
/// after any key, also on another connection.
package struct EntryReader {
    package let client: BlockingLarderClient
    private let prefix: [UInt8]
    private let hasValues: Bool

    /// - Parameter hasValues: whether to read the values. If not, they are empty.
    package init(client: BlockingLarderClient, prefix: [UInt8], hasValues: Bool = true) {
        (self.client, self.prefix, self.hasValues) = (client, prefix, hasValues)
    }

    /// Calls `body` with all entries of the selected database after a key, step by step.
    package func forEachStep(after key: [UInt8]? = nil, _ body: ([StoredEntry]) throws -> Void) throws {
        var after = key
        repeat {
            let step = try step(after: after)
            try body(step.entries)
            after = step.next
        } while after != nil
    }

    /// Reads the next entries after a key.
    /// - Returns: the entries, and the key after which to continue; nil at the end of the database.
    func step(after key: [UInt8]?) throws(LarderClientError) -> (entries: [StoredEntry], next: [UInt8]?) {
        var words = wordList("ENTRIES", "COUNT", "1000") + (hasValues ? [] : wordList("NOVALUES"))
        if let key { words += [Array("AFTER".utf8), key] }
        if !prefix.isEmpty { words += [Array("PREFIX".utf8), prefix] }
        let reply = try client.command(bytes: words)
        if let text = reply.errorMessage { throw LarderClientError.server(text, operation: "ENTRIES") }
        let wrong = LarderClientError.unexpectedReply(to: "ENTRIES", "a key and a list of entries")
        guard let parts = reply.elements, parts.count == 2, let list = parts[1].elements else { throw wrong }
        let entries = list.compactMap { $0.elements.flatMap { StoredEntry($0, hasValue: hasValues) } }
        guard entries.count == list.count else { throw wrong }
        return (entries, parts[0].bytes)
    }
}
