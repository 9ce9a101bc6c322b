import LarderVocabulary

/// Makes extractors from the definitions of indexes. The engine stores a definition as bytes, and does not know what
/// they mean.
package protocol IndexMaker: Sendable {
    /// Returns the extractor of a definition; nil if the definition cannot be read, for example because a later version
    /// has written it. Its index then cannot be used, and is built anew as soon as there is an extractor.
    func extractor(of definition: [UInt8]) -> (any IndexExtractor)?
}

/// Finds the terms under which an index lists an entry. Thread-safe, and always with the same result for the same
/// entry.
package protocol IndexExtractor: Sendable {
    /// Adds the terms of an entry. Called with a checkpoint waiting, but without a shard's lock.
    ///
    /// - The order of terms is that of their bytes. No term may be the beginning of another possible term of the same
    ///   definition: end each component of variable length with a terminator that is less than everything that may
    ///   follow. A term has 1 to ``TermList/termBytesMax`` bytes.
    /// - The same term may be added twice. An entry that the index does not list has no term.
    /// - If an entry has too many terms, add one term that stands for such entries instead.
    func addTerms(of entry: IndexedEntry, to terms: inout TermList)
}

/// An entry whose terms are extracted by the extractors of all indexes, one after the other. Its bytes are valid only
/// during the call.
package final class IndexedEntry {
    package private(set) var key = UnsafeRawBufferPointer(start: nil, count: 0)
    package private(set) var header = RecordHeader(storedAt: 0)
    package private(set) var payload = UnsafeRawBufferPointer(start: nil, count: 0)
    /// Changes with each entry; not 0.
    package private(set) var number = 0
    /// What an extractor has found out about the entry with a ``number``, and memory that the next calls reuse.
    package var scratch: AnyObject?

    init() {}

    func set(_ key: UnsafeRawBufferPointer, _ header: RecordHeader, _ payload: UnsafeRawBufferPointer) {
        (self.key, self.header, self.payload) = (key, header, payload)
        number += 1
    }
}

/// The terms of one entry in one index.
package struct TermList {
    /// The maximum length of a term, in bytes.
    package static let termBytesMax = 1024

    private var bytes: [UInt8] = []
    /// Where each term ends in `bytes`.
    private var ends: [Int] = []

    package init() {}

    package var count: Int { ends.count }

    /// Adds the term that `body` appends. `body` must only append.
    package mutating func add(_ body: (inout [UInt8]) -> Void) {
        body(&bytes)
        let count = bytes.count - (ends.last ?? 0)
        precondition((1...Self.termBytesMax).contains(count), "a term must have 1 to \(Self.termBytesMax) bytes")
        ends.append(bytes.count)
    }

    package mutating func add(_ term: some Sequence<UInt8>) { add { $0.append(contentsOf: term) } }

    package mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
    }

    /// Calls `body` with each term.
    package func forEachTerm<Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        try bytes.withUnsafeBufferPointer { (bytes) throws(Failure) in
            var start = 0
            for end in ends {
                try body(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[start..<end])))
                start = end
            }
        }
    }
}

/// An index of a database, as it was created.
package struct DatabaseIndex: Hashable, Sendable {
    /// Identifies the index in its hints: no two indexes of a larder ever have the same number.
    package let number: UInt64
    package let name: String
    package let definition: [UInt8]

    package init(number: UInt64, name: String, definition: [UInt8]) {
        self.number = number
        self.name = name
        self.definition = definition
    }
}

/// An index that a database is to have.
package struct NewIndex: Sendable {
    let name: String
    let definition: [UInt8]
    let extractor: (any IndexExtractor)?

    /// - Parameter extractor: that of a definition for which the larder's ``IndexMaker`` has none. The first one of a
    ///   definition is used until the larder is closed.
    package init(_ name: String, _ definition: [UInt8], _ extractor: (any IndexExtractor)? = nil) {
        (self.name, self.definition, self.extractor) = (name, definition, extractor)
    }
}

/// The state of an index.
package struct IndexStatus: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        /// The index is being built in the background; queries cannot use it yet.
        case building(percent: Int)
        case ready
        /// There is no extractor for its definition.
        case unreadable
    }

    package let index: DatabaseIndex
    package let state: State
    /// The number of hints, with stale ones. An entry has one for each of its terms; one that was written since the
    /// last checkpoint may count again: once, or for each write if there are more than 16,384 such entries.
    package let hints: Int
    /// The estimated number of stale hints in LevelDB, from a sample of 64: they list an entry that LevelDB has not, or
    /// with other terms. 0 without an extractor.
    package let stale: Int

    package init(index: DatabaseIndex, state: State, hints: Int, stale: Int) {
        self.index = index
        self.state = state
        self.hints = hints
        self.stale = stale
    }
}
