import LarderJSONCoding

/// What an index lists, and in which order: the words of INDEX CREATE after the name.
package struct IndexDefinition: Hashable, Sendable {
    /// What the terms are. The raw value is the first byte of a stored definition: versions of Larder that do not know
    /// a kind do not use its indexes.
    package enum Kind: UInt8, Sendable {
        case values = 1
        case places = 2
        /// Of values that a closure of the program computes.
        case computed = 3
    }

    package let kind: Kind
    /// The index lists only entries whose keys begin with these bytes.
    package let prefix: [UInt8]
    /// Of an index of places, only its path; of a computed index, only ``QueryPath/computed(_:version:of:)``.
    package let order: QueryOrder

    package init(_ kind: Kind = .values, prefix: [UInt8] = [], order: QueryOrder) {
        (self.kind, self.prefix, self.order) = (kind, prefix, order)
    }

    /// Parses `[PREFIX p] [GEO] ON path [DESC] [path [DESC] …]`.
    package init(_ words: [[UInt8]]) throws(QueryError) {
        var words = QueryWords(words)
        prefix = words.take("PREFIX") ? try words.next("the prefix of the keys") : []
        kind = words.take("GEO") ? .places : .values
        if kind == .places, words.keyword == "PREFIX" { throw QueryError("PREFIX must precede GEO") }
        guard words.take("ON") else { throw words.unexpected("PREFIX, GEO or ON", ["PREFIX", "GEO", "ON"]) }
        order = try words.order(until: [])
        let first = order.parts[0]
        if kind == .places, order.parts.count > 1 || first.isDescending || first.path.root != .document {
            throw QueryError("a GEO index has one path of a field, without DESC")
        }
        for part in order.parts {
            switch part.path.root {
            case .key: throw QueryError("@key needs no index: entries have the order of their keys")
            case .expires: throw QueryError("@expires cannot be indexed: a change of the policy would change it")
            case .document, .stored, .computed, .distance: break
            }
            if [" DESC", " GEO"].contains(where: { part.path.text.hasSuffix($0) }) {
                throw QueryError(
                    "the field '\(part.path.text)' cannot be indexed: lists of indexes write DESC and GEO after a name")
            }
        }
    }

    /// The words of INDEX CREATE after the name.
    package static func words(
        prefix: [UInt8], isOfPlaces: Bool, _ paths: [(path: String, isDescending: Bool)]
    ) -> [[UInt8]] {
        var words = isOfPlaces ? ["GEO", "ON"] : ["ON"]
        for part in paths { words += [QueryPath.word(part.path)] + (part.isDescending ? ["DESC"] : []) }
        return (prefix.isEmpty ? [] : [Array("PREFIX".utf8), prefix]) + words.map { Array($0.utf8) }
    }

    /// The definition as it is stored.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = [kind.rawValue]
        bytes.append(counted: prefix)
        bytes.append(order)
        return bytes
    }

    /// Returns nil if the bytes are not those of a definition that this version knows.
    package init?(bytes: [UInt8]) {
        var reader = ByteReader(bytes)
        guard let kind = reader.byte().flatMap(Kind.init), let prefix = reader.counted(), let order = reader.order(),
            !order.parts.isEmpty, reader.isAtEnd,
            order.parts.allSatisfy({ $0.center == nil && ($0.path.root == .computed) == (kind == .computed) })
        else { return nil }
        self.init(kind, prefix: prefix, order: order)
    }

    /// The definition as the words of INDEX CREATE after the name.
    package var text: String {
        (prefix.isEmpty ? "" : "PREFIX \(String(decoding: prefix, as: UTF8.self)) ")
            + (kind == .places ? "GEO ON " : "ON ") + order.text
    }

    /// The paths, each with how it is listed.
    package var paths: [String] {
        order.parts.map { $0.path.text + ($0.isDescending ? " DESC" : kind == .places ? " GEO" : "") }
    }
}

/// The terms of documents in an index: texts whose order is that of the values.
///
/// ```
/// term       region, then one component for each path; a cut or rounded component is the last one
/// region     0: no path leads to an array; 1: one path does, the term is that of one element; 2: all entries
///            with several arrays or more than 256 elements have this term, which is only the region
/// component  1 missing, 2 null, 3 false, 4 true, 7 array or object
///            5, the double with its bits in order (8 bytes), and whether the number is less (0), equal (1) or greater (2)
///            6, the bytes of the text (0 as 0 FF) up to 96, then 0 0, or 0 1 if the text was cut
/// ```
/// The bytes of a component are inverted if its path is descending. No component is the beginning of another one.
///
/// In an index of places, each place of an entry has the term 0 and its cell (8 bytes): see ``QueryPlace/cell``. In a
/// computed index, several values of an entry have the terms of the elements of an array, and a single one its own.
package enum IndexTerms {
    package enum Region { static let single: UInt8 = 0, element: UInt8 = 1, several: UInt8 = 2 }

    /// The maximum number of elements of an array that have their own terms.
    package static let elementsMax = 256
    static let textBytesMax = 96

    /// Passes the terms of an entry to `body`; none if the index does not list the entry. May pass a term twice.
    package static func forEach(
        of document: borrowing JSONDocument, _ facts: QueryFacts, _ definition: IndexDefinition,
        _ body: ([UInt8]) -> Void
    ) {
        guard facts.key.starts(with: definition.prefix) else { return }
        if definition.kind == .places { return forEachPlace(of: document, definition.order.parts[0].path, body) }
        var term = [Region.single]
        term.reserveCapacity(64)
        var isCut = false
        for part in definition.order.parts {
            guard part.path.root == .document else {
                if !isCut { isCut = append(part.path.fact(facts), descending: part.isDescending, to: &term) }
                continue
            }
            let node = part.path.find(in: document)
            if let node, document.isFilledArray(node) { return forEachElement(of: document, facts, definition, body) }
            if isCut { continue }
            if let node {
                isCut = document.withView(node) { append($0, descending: part.isDescending, to: &term) }
            } else {
                isCut = append(ValueView.missing, descending: part.isDescending, to: &term)
            }
        }
        body(term)
    }

    /// Passes the terms of computed values to `body`: as for an array, or for a single value. May pass a term twice.
    package static func forEach(computed values: [JSONText], _ body: ([UInt8]) -> Void) {
        if values.count > elementsMax { return body([Region.several]) }
        var document = JSONDocument()
        for value in values {
            value.bytes.withUnsafeBytes { text in
                guard document.load(text) else { return }
                var term = [values.count == 1 ? Region.single : Region.element]
                document.withView(JSONDocument.root) { _ = append($0, descending: false, to: &term) }
                body(term)
            }
        }
    }

    private static func forEachPlace(
        of document: borrowing JSONDocument, _ path: QueryPath, _ body: ([UInt8]) -> Void
    ) {
        guard let node = path.find(in: document) else { return }
        if hasTooManyElements(document, node) { return body([Region.several]) }
        QueryPlace.forEach(of: document, node) { body(term(of: $0.cell)) }
    }

    static func term(of cell: UInt64) -> [UInt8] {
        var term = [Region.single]
        term.append(word: cell)
        return term
    }

    private static func hasTooManyElements(_ document: borrowing JSONDocument, _ node: Int) -> Bool {
        guard document.kind(node) == .array else { return false }
        var count = 0
        document.forEachElement(node) { _ in
            count += 1
            return count <= elementsMax
        }
        return count > elementsMax
    }

    /// Passes the terms of an entry with arrays to `body`.
    private static func forEachElement(
        of document: borrowing JSONDocument, _ facts: QueryFacts, _ definition: IndexDefinition,
        _ body: ([UInt8]) -> Void
    ) {
        var values: [QueryValue] = []
        var array: (part: Int, node: Int)?
        for (index, part) in definition.order.parts.enumerated() {
            let node = part.path.root == .document ? part.path.find(in: document) : nil
            if let node, document.isFilledArray(node) {
                if array != nil { return body([Region.several]) }
                array = (index, node)
                values.append(.missing)
            } else {
                values.append(node.map { document.value($0) } ?? part.path.fact(facts))
            }
        }
        guard let array else { return }
        if hasTooManyElements(document, array.node) { return body([Region.several]) }
        document.forEachElement(array.node) { element in
            values[array.part] = document.value(element)
            body(term(Region.element, values, definition.order))
            return true
        }
    }

    /// The term of values, perhaps of fewer than the index has paths.
    static func term(_ region: UInt8, _ values: [QueryValue], _ order: QueryOrder) -> [UInt8] {
        var term = [region]
        for (value, part) in zip(values, order.parts) {
            if append(value, descending: part.isDescending, to: &term) { break }
        }
        return term
    }

    /// Appends the component of a value.
    /// - Returns: whether it is the last one, because other values may have the same component.
    @discardableResult
    static func append(_ value: QueryValue, descending: Bool, to term: inout [UInt8]) -> Bool {
        value.withView { append($0, descending: descending, to: &term) }
    }

    @discardableResult
    static func append(_ value: ValueView, descending: Bool, to term: inout [UInt8]) -> Bool {
        let start = term.count
        var isLossy = false
        switch value {
        case .missing: term.append(1)
        case .null: term.append(2)
        case .no: term.append(3)
        case .yes: term.append(4)
        case .number(let number):
            term.append(5)
            let double = number.double
            // The bits of doubles have the order of their values if those of negative ones are inverted.
            let bits = double.bitPattern
            term.append(word: bits >> 63 == 0 ? bits | 1 << 63 : ~bits)
            let order = number.isDouble ? 0 : number.order(QueryNumber(double))
            term.append(order < 0 ? 0 : order == 0 ? 1 : 2)
            isLossy = order != 0
        case .text(let text):
            term.append(6)
            isLossy = append(text, to: &term)
            term += isLossy ? [0, 1] : [0, 0]
        case .container: term.append(7)
        }
        if descending { for index in start..<term.count { term[index] = ~term[index] } }
        return isLossy
    }

    /// Appends the bytes of a text, without their end.
    /// - Returns: whether the text was cut.
    static func append(_ text: UnsafeRawBufferPointer, to term: inout [UInt8]) -> Bool {
        if text.count <= textBytesMax, !text.contains(0) {
            term.append(contentsOf: text)
            return false
        }
        let end = term.count + textBytesMax
        for byte in text {
            guard term.count + (byte == 0 ? 2 : 1) <= end else { return true }
            term.append(byte)
            if byte == 0 { term.append(0xFF) }
        }
        return false
    }

    /// The position after a number of components, or the end of a term whose last component is cut or rounded.
    static func end(of count: Int, in term: [UInt8], _ order: QueryOrder) -> Int {
        var position = 1
        for part in order.parts.prefix(count) {
            guard position < term.count else { break }
            let mask: UInt8 = part.isDescending ? 0xFF : 0
            switch term[position] ^ mask {
            case 5: position += 10
            case 6:
                position += 1
                while position + 1 < term.count, term[position] ^ mask != 0 || term[position + 1] ^ mask == 0xFF {
                    position += term[position] ^ mask == 0 ? 2 : 1
                }
                position += 2
            default: position += 1
            }
        }
        return min(position, term.count)
    }
}

extension JSONDocument {
    /// Whether a value is an array with elements.
    fileprivate func isFilledArray(_ node: Int) -> Bool { kind(node) == .array && next(node) > node + 1 }
}
