import LarderPlatform

/// The indexes of a database for one query.
///
/// A candidate is a term and the key of an entry that may have this term. The query looks up the entry, and evaluates
/// its whole condition on it:
/// - An entry that the query's condition matches, from before the view was created until the query ends, is a
///   candidate for one of the terms that it has in that time. This also holds if its term changes meanwhile.
/// - A candidate's entry may be missing, or have other terms, because it was changed since, or because the hint is
///   stale. If its condition matches nevertheless, the query must return it: it may not be a candidate for its present
///   term. The same entry may then be a candidate twice. So a query over several terms keeps the keys that it has
///   returned, and a query in the order of an index compares the present term with the candidate's.
/// - Pass hints to ``reportStale(_:term:key:)`` if the entry is missing or has other terms, so that stale hints are
///   removed.
///
/// LevelDB cannot delete the files that a view reads, so close or release it soon. Used by one thread at a time.
package final class IndexView {
    /// An index that can be used.
    package struct ReadyIndex {
        package let index: DatabaseIndex
        package let extractor: any IndexExtractor
    }

    /// The indexes that were ready when the view was created.
    package let indexes: [ReadyIndex] = []

    init() {}

    /// Releases the files. Later calls throw. Idempotent.
    package func close() {}

    /// Returns the candidates with the terms of a range, in the order of (term, key), each once.
    /// - Parameters:
    ///   - lower: the lowest term.
    ///   - upper: greater than every term of the range; nil for no limit.
    ///   - backward: whether to begin with the greatest term and key.
    ///   - position: the term and the key after which to begin, in the given direction: a position of an earlier view.
    package func candidates(
        _ index: DatabaseIndex, from lower: [UInt8], upTo upper: [UInt8]?, backward: Bool = false,
        after position: (term: [UInt8], key: [UInt8])? = nil
    ) throws(LarderError) -> IndexCandidates {
        IndexCandidates()
    }

    /// Notes that the entry of a key does not have this term, so that the hint is removed if LevelDB's record does not
    /// have it either. Cheap; may ignore the report.
    package func reportStale(_ index: DatabaseIndex, term: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer) {}
}

/// The candidates of a range of terms. Used by one thread at a time.
package final class IndexCandidates {
    init() {}

    /// Moves to the next candidate; the first call moves to the first one.
    /// - Returns: false at the end.
    package func next() throws(LarderError) -> Bool { false }

    /// Passes the present candidate to `body`. The bytes are valid only during the call.
    package func withCandidate<Result>(
        _ body: (_ term: UnsafeRawBufferPointer, _ key: UnsafeRawBufferPointer) -> Result
    ) throws(LarderError) -> Result {
        body(UnsafeRawBufferPointer(start: nil, count: 0), UnsafeRawBufferPointer(start: nil, count: 0))
    }
}

extension Database {
    /// The indexes of the database.
    /// - Parameter counting: whether to count the hints; otherwise their numbers are 0. Reads all hints, unless LevelDB
    ///   has not changed since the last count.
    package func indexes(counting: Bool) throws(LarderError) -> [IndexStatus] { [] }

    /// Creates an index, and waits until that is on the disk. The index is built in the background. Creates the
    /// database if it does not exist. Does nothing if there is an index of this name with the same definition; replaces
    /// an index of this name with another definition. May block.
    /// - Throws: ``LarderError/Code/invalidArgument`` for an invalid name, a definition that the larder's
    ///   ``IndexMaker`` refuses, and too many or too long definitions.
    package func createIndex(named name: String, definition: [UInt8]) throws(LarderError) {
        throw LarderError(.invalidArgument, "this larder has no indexes", operation: "index", database: self.name)
    }

    /// Removes an index, and waits until that is on the disk. Its hints are deleted in the background. May block.
    /// - Returns: false if there is no such index.
    package func dropIndex(named name: String) throws(LarderError) -> Bool { false }

    /// Creates a view of the indexes. May block, because it may have to find the terms of entries that were changed
    /// recently.
    /// - Returns: nil if the database has no files, and so no entries.
    package func indexView() throws(LarderError) -> IndexView? { nil }
}
