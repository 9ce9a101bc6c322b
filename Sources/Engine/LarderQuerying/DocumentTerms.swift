import LarderEngine
import LarderJSONCoding
import LarderQueries

/// Makes the extractors of indexes on JSON documents, for the options of the engine.
package struct DocumentIndexMaker: IndexMaker {
    package init() {}

    /// Computed indexes need ``DocumentTerms/init(_:computed:)``.
    package func extractor(of definition: [UInt8]) -> (any IndexExtractor)? {
        IndexDefinition(bytes: definition).flatMap { $0.kind == .computed ? nil : DocumentTerms($0) }
    }
}

/// Finds the terms of JSON documents. Entries that are not JSON have none.
package struct DocumentTerms: IndexExtractor {
    let definition: IndexDefinition
    private let compute: (@Sendable (UnsafeRawBufferPointer) -> [JSONText])?

    /// - Parameter compute: returns the values of an entry's text in a computed index.
    package init(
        _ definition: IndexDefinition, computed compute: (@Sendable (UnsafeRawBufferPointer) -> [JSONText])? = nil
    ) {
        (self.definition, self.compute) = (definition, compute)
    }

    package func addTerms(of entry: IndexedEntry, to terms: inout TermList) {
        guard entry.key.starts(with: definition.prefix) else { return }
        if let compute { return IndexTerms.forEach(computed: compute(entry.payload)) { terms.add($0) } }
        let parsed = entry.scratch as? ParsedDocument ?? ParsedDocument()
        entry.scratch = parsed
        guard parsed.load(entry) else { return }
        // Indexes cannot refer to the deadline, which depends on the policy.
        let facts = QueryFacts(key: entry.key, stored: entry.header.storedAt, expires: nil)
        // The other `add` is generic, and slow in another module.
        IndexTerms.forEach(of: parsed.document, facts, definition) { term in terms.add { $0 += term } }
    }
}

/// The document of an entry, for all indexes of the database.
private final class ParsedDocument {
    private(set) var document = JSONDocument()
    private var number = 0
    private var isJSON = false

    /// Parses an entry, unless that was done.
    /// - Returns: whether it is JSON.
    func load(_ entry: IndexedEntry) -> Bool {
        if number == entry.number { return isJSON }
        number = entry.number
        isJSON = document.load(entry.payload)
        return isJSON
    }
}
