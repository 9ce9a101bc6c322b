import LarderLevelDB
import LarderPlatform
import LarderVocabulary

/// The hints of indexes in LevelDB. A hint says that an entry may have a term: its key has the number of the index, the
/// term, and the entry's key; its value is the length of the term.
///
/// Every record in LevelDB has its hints in each index that is ready, and in each index that is being built if a
/// checkpoint has written the record since the index was created, or the building has passed the record. A hint may be
/// stale: the record was changed or removed since. So readers look up each entry.
enum Hint {
    /// The length of the part of a key before the term: the kind and the number of the index.
    static let headBytes = 9

    /// The beginning of the keys of an index's hints.
    static func head(_ number: UInt64) -> [UInt8] {
        var bytes: [UInt8] = [KeyKind.hint]
        BigEndian.append(number, to: &bytes)
        return bytes
    }

    static func value(termCount: Int) -> [UInt8] { [UInt8(termCount >> 8), UInt8(termCount & 0xFF)] }

    /// Returns the length of the term in a hint; nil if the hint is malformed.
    static func termCount(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Int? {
        guard key.count > headBytes, key[0] == KeyKind.hint, value.count == 2 else { return nil }
        let count = Int(value[0]) << 8 | Int(value[1])
        return count > 0 && count <= key.count - headBytes ? count : nil
    }
}

/// The last hint of each index in a LevelDB, so that queries do not seek for terms that follow it: each query looks for
/// elements of arrays, and most indexes have none. Thread-safe.
final class LastHints: Sendable {
    private let known = Locked<[[UInt8]: (generation: UInt64, hint: [UInt8])]>([:])

    /// Whether a key follows the last hint of an index, whose hints begin with `head`.
    /// - Parameters:
    ///   - generation: ``EpochStore/writeGeneration`` before the snapshot was taken.
    ///   - find: returns the last hint; empty if there are none.
    func precede(
        _ key: [UInt8], _ head: [UInt8], _ generation: UInt64, _ find: () throws(LevelDBError) -> [UInt8]
    ) throws(LevelDBError) -> Bool {
        let last = known.withLock { $0[head] }
        if let last, last.generation == generation { return last.hint.lexicographicallyPrecedes(key) }
        let hint = try find()
        known.withLock { known in
            if known.count > IndexRules.countMax { known = [:] }
            known[head] = (generation, hint)
        }
        return hint.lexicographicallyPrecedes(key)
    }
}

/// An index that can be used: there is an extractor for its definition.
struct OpenIndex: Sendable {
    let index: DatabaseIndex
    /// Nil if the definition cannot be read.
    let extractor: (any IndexExtractor)?
}

/// Finds the hints of records, in reused memory.
struct HintMaker {
    private let indexes: [OpenIndex]
    private let entry = IndexedEntry()
    private var terms = TermList()
    private var key: [UInt8] = []
    /// The total size of all hints, in bytes, and their number.
    private(set) var byteCount = 0
    private(set) var count = 0

    init(_ indexes: [OpenIndex]) { self.indexes = indexes.filter { $0.extractor != nil } }

    var isEmpty: Bool { indexes.isEmpty }

    /// Calls `body` with each hint of a record: the number of its index, its key as in LevelDB, and the length of its
    /// term. A record that cannot be read has none.
    /// - Parameter key: the entry's key.
    mutating func forEachHint(
        _ key: UnsafeRawBufferPointer, _ record: UnsafeRawBufferPointer,
        _ body: (_ number: UInt64, _ hint: [UInt8], _ termCount: Int) -> Void
    ) {
        guard let header = try? RecordHeader(parsing: record, nil) else { return }
        entry.set(key, header, UnsafeRawBufferPointer(rebasing: record[header.byteCount...]))
        for open in indexes {
            terms.removeAll()
            open.extractor?.addTerms(of: entry, to: &terms)
            terms.forEachTerm { term in
                self.key.removeAll(keepingCapacity: true)
                self.key.append(KeyKind.hint)
                BigEndian.append(open.index.number, to: &self.key)
                self.key.append(contentsOf: term)
                self.key.append(contentsOf: key)
                byteCount += self.key.count + 2
                count += 1
                body(open.index.number, self.key, term.count)
            }
        }
    }
}
