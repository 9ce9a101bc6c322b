/// Changes of a JSON text: ranges that are replaced, while all other bytes stay as they are.
package struct JSONSplices {
    private var splices: [(place: Range<Int>, bytes: [UInt8], order: Int)] = []

    package init() {}

    package var isEmpty: Bool { splices.isEmpty }

    /// Replaces a range. If the range of another replacement contains it, the other replacement wins. Insertions at one
    /// position keep their order.
    package mutating func replace(_ place: Range<Int>, with bytes: [UInt8]) {
        splices.append((place, bytes, splices.count))
    }

    package mutating func insert(_ bytes: [UInt8], at position: Int) { replace(position..<position, with: bytes) }

    /// Returns the changed text; nil if its values would be nested too deeply. Takes time proportional to the text's
    /// length, and n log n for n changes.
    package func applied(to text: UnsafeRawBufferPointer) -> [UInt8]? {
        let sorted = splices.sorted { left, right in
            if left.place.lowerBound != right.place.lowerBound { return left.place.lowerBound < right.place.lowerBound }
            if left.place.upperBound != right.place.upperBound, !left.place.isEmpty, !right.place.isEmpty {
                return left.place.upperBound > right.place.upperBound
            }
            return left.order < right.order
        }
        var result: [UInt8] = []
        result.reserveCapacity(text.count + splices.reduce(0) { $0 + $1.bytes.count })
        var position = 0
        for splice in sorted where splice.place.lowerBound >= position {
            result += text[position..<splice.place.lowerBound]
            result += splice.bytes
            position = splice.place.upperBound
        }
        result += text[position...]
        // Only objects and arrays can make the text deeper.
        let mayBeDeeper = splices.contains { $0.bytes.contains { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "[") } }
        return mayBeDeeper && !result.withUnsafeBytes { JSONDocument($0) != nil } ? nil : result
    }

    // MARK: Values

    /// Adds a member to an object that has no member of this name.
    package mutating func add(_ name: String, _ value: JSONText, to object: Int, of document: borrowing JSONDocument) {
        let member = JSONText.member(name, value.bytes)
        if let last = document.members(object).last {
            insert([UInt8(ascii: ",")] + member, at: document.place(last + 1).upperBound)
        } else {
            insert(member, at: document.place(object).upperBound - 1)
        }
    }

    /// Inserts elements into an array, before the element at `index`, which is between 0 and the number of elements.
    package mutating func insert(
        _ values: [JSONText], at index: Int, of array: Int, in document: borrowing JSONDocument
    ) {
        guard !values.isEmpty else { return }
        let elements = document.children(array)
        let bytes = Array(values.map(\.bytes).joined(separator: [UInt8(ascii: ",")]))
        if elements.isEmpty {
            insert(bytes, at: document.place(array).upperBound - 1)
        } else if index < elements.count {
            insert(bytes + [UInt8(ascii: ",")], at: document.place(elements[index]).lowerBound)
        } else {
            insert([UInt8(ascii: ",")] + bytes, at: document.place(elements[elements.count - 1]).upperBound)
        }
    }

    /// Removes values, wherever they are: elements from their arrays, and members with all members of the same name.
    /// The root cannot be removed.
    package mutating func remove(_ values: Set<Int>, from document: borrowing JSONDocument) {
        guard !values.isEmpty else { return }
        var value = JSONDocument.root
        while value < document.end {
            if values.contains(value) {
                value = document.next(value)
            } else {
                if document.isContainer(value) { remove(values, fromContainer: value, of: document) }
                value += 1
            }
        }
    }

    /// Removes those values that are directly in a container.
    package mutating func remove(
        _ values: Set<Int>, fromContainer container: Int, of document: borrowing JSONDocument
    ) {
        let isObject = document.kind(container) == .object
        // The ranges of the container's items, and which of them are removed.
        var items: [(place: Range<Int>, isRemoved: Bool)] = []
        var hasRemoved = false
        if isObject {
            let members = document.members(container)
            var names: Set<[UInt8]> = []
            for name in members where values.contains(name + 1) { names.insert(Array(document.string(name).utf8)) }
            hasRemoved = !names.isEmpty
            guard hasRemoved else { return }
            for name in members {
                let place = document.place(name).lowerBound..<document.place(name + 1).upperBound
                items.append((place, names.contains(Array(document.string(name).utf8))))
            }
        } else {
            for element in document.children(container) {
                let isRemoved = values.contains(element)
                hasRemoved = hasRemoved || isRemoved
                items.append((document.place(element), isRemoved))
            }
            guard hasRemoved else { return }
        }
        // An item before the first kept one takes the comma after it along, any other the comma before it.
        let firstKept = items.firstIndex { !$0.isRemoved }
        for (index, item) in items.enumerated() where item.isRemoved {
            if index > firstKept ?? .max {
                replace(items[index - 1].place.upperBound..<item.place.upperBound, with: [])
            } else if index + 1 < items.count {
                replace(item.place.lowerBound..<items[index + 1].place.lowerBound, with: [])
            } else {
                replace(item.place, with: [])
            }
        }
    }
}

extension JSONDocument {
    /// Merges a patch into a value as in RFC 7396, and returns the new text of the value: members that are null in the
    /// patch are removed. Members that the patch does not name keep their bytes.
    package func merging(_ patch: JSONText, into value: Int) -> [UInt8] {
        patch.bytes.withUnsafeBytes { text in
            guard let patch = JSONDocument(text) else { return [] }
            return merging(patch, Self.root, into: value)
        }
    }

    /// - Parameter value: nil if there is nothing to merge into.
    private func merging(_ patch: borrowing JSONDocument, _ part: Int, into value: Int?) -> [UInt8] {
        guard patch.kind(part) == .object else { return [UInt8](patch.bytes(part)) }
        let isObject = value.map { kind($0) == .object } ?? false
        let changes = patch.valuesByName(part)
        var members: [[UInt8]] = []
        var merged: Set<[UInt8]> = []
        for name in isObject ? self.members(value ?? 0) : [] {
            let text = Array(string(name).utf8)
            var bytes = [UInt8](self.bytes(name)) + [UInt8(ascii: ":")]
            if let change = changes[text] {
                merged.insert(text)
                if patch.kind(change) == .null { continue }
                bytes += merging(patch, change, into: name + 1)
            } else {
                bytes += self.bytes(name + 1)
            }
            members.append(bytes)
        }
        for name in patch.members(part) where patch.kind(name + 1) != .null {
            guard merged.insert(Array(patch.string(name).utf8)).inserted else { continue }
            members.append([UInt8](patch.bytes(name)) + [UInt8(ascii: ":")] + merging(patch, name + 1, into: nil))
        }
        return [UInt8(ascii: "{")] + members.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "}")]
    }
}
