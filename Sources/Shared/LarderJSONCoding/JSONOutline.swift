/// Checks JSON texts, and finds the members of objects and the elements of arrays, without decoding values.
///
/// Accepts the same texts as ``DocumentIndex``: UTF-8 and JSON as in RFC 8259, up to 512 levels. Its memory does not
/// grow with the length of the text, except for the results.
package enum JSONOutline {
    /// A member of an object.
    package struct Member: Sendable {
        package let name: String
        /// The range of the member's value in the text, without white space around it.
        package let place: Range<Int>
    }

    /// The error for a text that is not a JSON object.
    package struct Defect: Error, Equatable {
        /// The position of the error: the number of valid bytes before it.
        package let offset: Int

        package init(offset: Int) { self.offset = offset }
    }

    /// Whether a text is exactly one JSON value. White space around the value is not allowed.
    package static func isValue(_ text: UnsafeRawBufferPointer) -> Bool {
        guard let base = text.baseAddress, text.count > 0 else { return false }
        var scanner = JSONScanner(base.assumingMemoryBound(to: UInt8.self), text.count)
        // This rejects white space: `skipValue` fails at the start, and `isAtEnd` is false before white space.
        return skipValue(&scanner) && scanner.isAtEnd
    }

    /// Returns the members of the object that a text contains, in order. White space around the object is allowed.
    package static func members(_ text: UnsafeRawBufferPointer) throws(Defect) -> [Member] {
        guard let base = text.baseAddress else { throw Defect(offset: 0) }
        let bytes = base.assumingMemoryBound(to: UInt8.self)
        var scanner = JSONScanner(bytes, text.count)
        func check(_ isValid: Bool) throws(Defect) {
            if !isValid { throw Defect(offset: max(0, scanner.position - 1)) }
        }
        scanner.skipSpace()
        try check(scanner.next() == UInt8(ascii: "{"))
        var members: [Member] = []
        scanner.skipSpace()
        if !scanner.skip(UInt8(ascii: "}")) {
            while true {
                scanner.skipSpace()
                let nameStart = scanner.position
                try check(scanner.next() == UInt8(ascii: "\"") && scanner.skipString() != nil)
                let nameEnd = scanner.position
                scanner.skipSpace()
                try check(scanner.next() == UInt8(ascii: ":"))
                scanner.skipSpace()
                let start = scanner.position
                try check(skipValue(&scanner))
                members.append(
                    Member(name: string(text, nameStart..<nameEnd) ?? "", place: start..<scanner.position))
                scanner.skipSpace()
                if scanner.skip(UInt8(ascii: "}")) { break }
                try check(scanner.next() == UInt8(ascii: ","))
            }
        }
        scanner.skipSpace()
        if !scanner.isAtEnd { throw Defect(offset: scanner.position) }
        return members
    }

    /// Returns the ranges of the elements of the array at `place`; nil if there is no array.
    package static func elements(_ text: UnsafeRawBufferPointer, _ place: Range<Int>) -> [Range<Int>]? {
        guard let base = text.baseAddress, !place.isEmpty, text[place.lowerBound] == UInt8(ascii: "[") else {
            return nil
        }
        let start = place.lowerBound
        var scanner = JSONScanner((base + start).assumingMemoryBound(to: UInt8.self), place.count)
        _ = scanner.next()
        var elements: [Range<Int>] = []
        scanner.skipSpace()
        while !scanner.skip(UInt8(ascii: "]")) {
            if scanner.skip(UInt8(ascii: ",")) { scanner.skipSpace() }
            let begin = scanner.position
            guard skipValue(&scanner) else { return nil }
            elements.append(start + begin..<start + scanner.position)
            scanner.skipSpace()
        }
        return elements
    }

    /// Decodes the string at `place`; nil if there is no string. The text must be valid JSON.
    package static func string(_ text: UnsafeRawBufferPointer, _ place: Range<Int>) -> String? {
        guard let base = text.baseAddress, place.count >= 2, text[place.lowerBound] == UInt8(ascii: "\"") else {
            return nil
        }
        let bytes = UnsafeBufferPointer(
            start: (base + place.lowerBound + 1).assumingMemoryBound(to: UInt8.self), count: place.count - 2)
        return StringText.unescaped(bytes)
    }

    // MARK: Scanning

    /// Skips a value that begins at the next byte.
    private static func skipValue(_ scanner: inout JSONScanner) -> Bool {
        // Most values are not objects or arrays, and need no stack of levels.
        switch scanner.next() {
        case UInt8(ascii: "["): return skipAggregate(&scanner, isObject: false)
        case UInt8(ascii: "{"): return skipAggregate(&scanner, isObject: true)
        case let byte: return skipScalar(&scanner, byte)
        }
    }

    /// Skips the rest of a value that is neither an object nor an array. Its first byte has been read.
    private static func skipScalar(_ scanner: inout JSONScanner, _ first: UInt8) -> Bool {
        switch first {
        case UInt8(ascii: "\""): scanner.skipString() != nil
        case UInt8(ascii: "-"), 0x30...0x39: scanner.skipNumber() != nil
        case UInt8(ascii: "t"): scanner.skip(rest: "rue")
        case UInt8(ascii: "f"): scanner.skip(rest: "alse")
        case UInt8(ascii: "n"): scanner.skip(rest: "ull")
        default: false
        }
    }

    private static func skipAggregate(_ scanner: inout JSONScanner, isObject: Bool) -> Bool {
        // Whether each of the open objects and arrays is an object.
        var levels = [isObject]
        // Whether the innermost object or array has just been opened, so that no comma is expected.
        var isNew = true
        while let isObject = levels.last {
            scanner.skipSpace()
            if scanner.skip(isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
                levels.removeLast()
                isNew = false
                continue
            }
            if !isNew {
                guard scanner.skip(UInt8(ascii: ",")) else { return false }
                scanner.skipSpace()
            }
            if isObject {
                guard scanner.skip(UInt8(ascii: "\"")), scanner.skipString() != nil else { return false }
                scanner.skipSpace()
                guard scanner.skip(UInt8(ascii: ":")) else { return false }
                scanner.skipSpace()
            }
            let byte = scanner.next()
            isNew = byte == UInt8(ascii: "[") || byte == UInt8(ascii: "{")
            if isNew {
                guard levels.count < DocumentIndex.depthMax else { return false }
                levels.append(byte == UInt8(ascii: "{"))
            } else {
                guard skipScalar(&scanner, byte) else { return false }
            }
        }
        return true
    }
}
