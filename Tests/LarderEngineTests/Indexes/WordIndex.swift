import LarderPlatform
import LarderVocabulary

@testable import LarderEngine

/// Makes extractors for tests, from these definitions:
/// - `words`: each of the words in the value, which are separated by commas, is a term;
/// - `length`: the number of bytes of the value is the term;
/// - `words` or `length`, and more text: the same, as a different definition.
struct WordIndexMaker: IndexMaker {
    func extractor(of definition: [UInt8]) -> (any IndexExtractor)? {
        let text = String(decoding: definition, as: UTF8.self)
        if text.hasPrefix("words") { return WordExtractor() }
        return text.hasPrefix("length") ? LengthExtractor() : nil
    }
}

private struct WordExtractor: IndexExtractor {
    func addTerms(of entry: IndexedEntry, to terms: inout TermList) {
        for word in entry.payload.split(separator: UInt8(ascii: ",")) { terms.add(Array(word.prefix(100)) + [0]) }
    }
}

private struct LengthExtractor: IndexExtractor {
    static func term(length: Int) -> [UInt8] {
        let length = min(length, 0xFFFF)
        return [UInt8(length >> 8), UInt8(length & 0xFF)]
    }

    func addTerms(of entry: IndexedEntry, to terms: inout TermList) {
        terms.add(Self.term(length: entry.payload.count))
    }
}

extension Database {
    func createIndex(_ name: String, _ definition: String = "words") throws(LarderError) {
        try indexes.create(named: name, definition: Array(definition.utf8))
    }

    /// The states of the indexes by their names.
    func indexStates() throws(LarderError) -> [String: IndexStatus.State] {
        try indexes.list(counting: false).reduce(into: [:]) { $0[$1.index.name] = $1.state }
    }

    /// Runs all background work on the indexes.
    func finishIndexes() throws(LarderError) {
        let work = IndexWork(context) { [self] in [self] }
        while try work.step(self) {}
    }

    /// Returns the keys of the entries with a word in a range, as a query would find them, in the order of the words;
    /// nil if the index is not ready.
    /// - Parameter isExact: whether nothing is changed meanwhile, so that an entry is in the right place of the order.
    func keys(
        withWordsFrom first: String, through last: String, in name: String = "w", backward: Bool = false,
        isExact: Bool = true
    ) throws(LarderError) -> [String]? {
        guard let view = try indexes.view() else { return [] }
        defer { view.close() }
        guard let index = view.indexes.first(where: { $0.index.name == name }) else { return nil }
        let (lower, upper) = (Array(first.utf8) + [0], Array(last.utf8) + [0])
        let candidates = try view.candidates(
            index.index, from: lower, upTo: ByteOrder.successor(ofPrefix: upper), backward: backward)
        var result: [String] = []
        var seen: Set<String> = []
        while try candidates.next() {
            let (term, key) = try candidates.withCandidate { ([UInt8]($0), [UInt8]($1)) }
            let record = try get(Key(key))
            let words = record?.text.split(separator: ",").map { Array($0.utf8) + [0] } ?? []
            if !words.contains(term) {
                term.withUnsafeBytes { term in
                    key.withUnsafeBytes { view.reportStale(index.index, term: term, key: $0) }
                }
                if isExact { continue }
            }
            let text = String(decoding: key, as: UTF8.self)
            let matches = words.contains { lower.precedes($0) && $0.precedes(upper) }
            if matches, seen.insert(text).inserted { result.append(text) }
        }
        return result
    }

    /// Returns the keys of all entries, as a query of an index of their lengths finds them; nil if it is not ready.
    func keys(byLengthIn name: String) throws(LarderError) -> Set<String>? {
        guard let view = try indexes.view() else { return [] }
        defer { view.close() }
        guard let index = view.indexes.first(where: { $0.index.name == name }) else { return nil }
        let candidates = try view.candidates(index.index, from: [], upTo: nil)
        var found: Set<String> = []
        while try candidates.next() {
            let (term, key) = try candidates.withCandidate { ([UInt8]($0), [UInt8]($1)) }
            guard let record = try get(Key(key)), LengthExtractor.term(length: record.payload.count) == term else {
                continue
            }
            found.insert(String(decoding: key, as: UTF8.self))
        }
        return found
    }

    /// Returns a description of each record in LevelDB that lacks a hint in an index that is ready.
    func missingHints() throws(LarderError) -> [String] {
        guard let store = durableState.store, store.isMade else { return [] }
        let entries = try store.rawEntries()
        let hints = Set(entries.map(\.key).filter { $0.first == KeyKind.hint })
        var missing: [String] = []
        for open in indexing.open where open.extractor != nil {
            guard try indexing.progress(open.index.number, in: store) == .ready,
                try store.indexProgress(open.index.number) == .ready
            else { continue }
            var maker = HintMaker([open])
            for entry in entries where entry.key.first == KeyKind.record {
                Array(entry.key.dropFirst()).withUnsafeBytes { key in
                    entry.value.withUnsafeBytes { value in
                        maker.forEachHint(key, value) { _, hint, _ in
                            if hints.contains(hint) { return }
                            missing.append("\(open.index.name) \(String(decoding: key, as: UTF8.self))")
                        }
                    }
                }
            }
        }
        return missing
    }

    /// The number of hints in LevelDB.
    func hintCountInLevelDB() throws(LarderError) -> Int {
        guard let store = durableState.store, store.isMade else { return 0 }
        return try store.rawKeys().filter { $0.first == KeyKind.hint }.count
    }
}

extension [UInt8] {
    /// Whether these bytes are less than or equal to others.
    fileprivate func precedes(_ other: [UInt8]) -> Bool { !other.lexicographicallyPrecedes(self) }
}
