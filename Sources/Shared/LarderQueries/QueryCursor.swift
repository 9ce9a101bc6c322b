import LarderPlatform

/// Where a page of a query ended: the order of its rows and the position of its last row, as text without state in the
/// daemon. Contains a checksum, and a hash of the query, so that it is not used with another query.
package struct QueryCursor: Hashable, Sendable {
    package let order: QueryOrder
    package let last: QueryPosition

    package init(order: QueryOrder, last: QueryPosition) { (self.order, self.last) = (order, last) }

    private static let version: UInt8 = 1

    /// Parses a cursor that ``text(of:)`` returned for a page of the same query.
    init(_ text: [UInt8], of query: Query) throws(QueryError) {
        var reader = ByteReader(Base64URL.decode(text) ?? [])
        guard let sum = reader.word(), sum == StableHash.fnv1a(reader.rest), reader.byte() == Self.version,
            let identity = reader.word(), let order = reader.order(), let position = reader.position(order)
        else { throw QueryError("invalid cursor: pass the cursor of the previous page unchanged") }
        guard identity == Self.identity(of: query) else {
            throw QueryError("the cursor belongs to another query: WHERE and SORT must be the same on each page")
        }
        (self.order, last) = (order, position)
    }

    package func text(of query: Query) -> [UInt8] {
        var body: [UInt8] = [Self.version]
        body.append(word: Self.identity(of: query))
        body.append(order)
        for value in last.values { body.append(value) }
        body.append(counted: last.key)
        var bytes: [UInt8] = []
        bytes.append(word: StableHash.fnv1a(body))
        return Base64URL.encode(bytes + body)
    }

    /// A hash of the parts of a query that determine which rows follow: the same in every process and version.
    private static func identity(of query: Query) -> UInt64 {
        var bytes: [UInt8] = []
        bytes.append(query.order)
        if let condition = query.condition { bytes.append(condition) }
        return StableHash.fnv1a(bytes)
    }
}

/// Reads what the functions of ``Swift/Array`` below wrote. Returns nil for other bytes.
struct ByteReader {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func bytes(_ count: Int) -> [UInt8]? {
        guard count >= 0, count <= rest.count else { return nil }
        defer { rest.removeFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func byte() -> UInt8? { bytes(1)?[0] }
    mutating func word() -> UInt64? { bytes(8)?.reduce(0) { $0 << 8 | UInt64($1) } }
    mutating func count() -> Int? { bytes(4).map { $0.reduce(0) { $0 << 8 | Int($1) } } }
    mutating func counted() -> [UInt8]? { count().flatMap { bytes($0) } }

    mutating func path() -> QueryPath? {
        counted().flatMap { String(validating: $0, as: UTF8.self) }.flatMap {
            try? QueryPath($0, allowsComputed: true)
        }
    }

    mutating func order() -> QueryOrder? {
        guard let count = byte(), count <= QueryOrder.partsMax else { return nil }
        var parts: [QueryOrder.Part] = []
        for _ in 0..<count {
            guard let flag = byte(), let path = path() else { return nil }
            if flag == 2 {
                guard let longitude = word(), let latitude = word(),
                    let center = QueryPlace(
                        longitude: Double(bitPattern: longitude), latitude: Double(bitPattern: latitude))
                else { return nil }
                parts.append(QueryOrder.Part(path, distanceTo: center))
            } else {
                parts.append(QueryOrder.Part(path, isDescending: flag == 1))
            }
        }
        return QueryOrder(parts)
    }

    mutating func value() -> QueryValue? {
        switch byte() {
        case 0: .missing
        case 1: .null
        case 2: .no
        case 3: .yes
        case 4:
            if let high = word(), let low = word() {
                .number(.integer(Int128(Int64(bitPattern: high)) << 64 | Int128(low)))
            } else {
                nil
            }
        case 5: word().map { .number(QueryNumber(Double(bitPattern: $0))) }
        case 6: counted().map { .text($0) }
        case 7: .container
        default: nil
        }
    }

    mutating func position(_ order: QueryOrder) -> QueryPosition? {
        var values: [QueryValue] = []
        for _ in order.parts {
            guard let value = value() else { return nil }
            values.append(value)
        }
        guard let key = counted(), isAtEnd else { return nil }
        return QueryPosition(values: values, key: key)
    }
}

extension [UInt8] {
    mutating func append(word: UInt64) {
        Swift.withUnsafeBytes(of: word.bigEndian) { append(contentsOf: $0) }
    }

    mutating func append(count: Int) {
        Swift.withUnsafeBytes(of: UInt32(truncatingIfNeeded: count).bigEndian) { append(contentsOf: $0) }
    }

    mutating func append(counted bytes: [UInt8]) {
        append(count: bytes.count)
        self += bytes
    }

    mutating func append(_ order: QueryOrder) {
        append(UInt8(order.parts.count))
        for part in order.parts {
            append(part.center != nil ? 2 : part.isDescending ? 1 : 0)
            append(counted: Array(part.path.text.utf8))
            if let center = part.center { append(center) }
        }
    }

    private mutating func append(_ place: QueryPlace) {
        append(word: place.longitude.bitPattern)
        append(word: place.latitude.bitPattern)
    }

    mutating func append(_ value: QueryValue) {
        switch value {
        case .missing: append(0)
        case .null: append(1)
        case .no: append(2)
        case .yes: append(3)
        case .number(.integer(let number)):
            append(4)
            append(word: UInt64(bitPattern: Int64(truncatingIfNeeded: number >> 64)))
            append(word: UInt64(truncatingIfNeeded: number))
        case .number(.real(let number)):
            append(5)
            append(word: number.bitPattern)
        case .text(let bytes):
            append(6)
            append(counted: bytes)
        case .container: append(7)
        }
    }

    fileprivate mutating func append(_ operand: QueryOperand) {
        switch operand {
        case .scalar(let value): append(value)
        case .container(let text):
            append(8)
            append(counted: text)
        }
    }

    private mutating func append(_ bound: QueryBound?) {
        guard let bound else { return append(0) }
        append(bound.isInclusive ? 2 : 1)
        append(bound.value)
    }

    private mutating func append(_ operands: QueryOperands) {
        append(count: operands.count)
        for value in operands.scalars { append(value) }
        for text in operands.containers { append(QueryOperand.container(text)) }
    }

    fileprivate mutating func append(_ condition: QueryCondition) {
        switch condition {
        case .test(let path, let test):
            append(1)
            append(counted: Array(path.text.utf8))
            append(test)
        case .not(let condition):
            append(2)
            append(condition)
        case .and(let conditions), .or(let conditions):
            if case .and = condition { append(3) } else { append(4) }
            append(count: conditions.count)
            for condition in conditions { append(condition) }
        }
    }

    private mutating func append(_ test: QueryTest) {
        switch test {
        case .equal(let operand):
            append(1)
            append(operand)
        case .range(let lower, let upper):
            append(2)
            append(lower)
            append(upper)
        case .oneOf(let operands):
            append(3)
            append(operands)
        case .all(let operands):
            append(4)
            append(operands)
        case .prefix(let prefix):
            append(5)
            append(counted: prefix)
        case .like(let pattern):
            append(6)
            append(counted: pattern.bytes)
        case .exists: append(7)
        case .missing: append(8)
        case .near(let place, let meters):
            append(9)
            append(place)
            append(word: meters.bitPattern)
        case .within(let box):
            append(10)
            for part in [box.west, box.south, box.east, box.north] { append(word: part.bitPattern) }
        }
    }
}

/// Base64 with the alphabet for URLs and without padding: a cursor is one word in any shell.
enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        let count = (bytes.count * 4 + 2) / 3
        return [UInt8](unsafeUninitializedCapacity: count) { text, used in
            for index in 0..<count {
                // The six bits of a letter are in this byte and the next one.
                let place = index * 6 / 8
                let pair = Int(bytes[place]) << 8 | (place + 1 < bytes.count ? Int(bytes[place + 1]) : 0)
                text[index] = alphabet[pair >> (10 - index * 6 % 8) & 63]
            }
            used = count
        }
    }

    static func decode(_ text: [UInt8]) -> [UInt8]? {
        var bytes: [UInt8] = []
        var (bits, count) = (0, 0)
        for letter in text {
            guard let digit = alphabet.firstIndex(of: letter) else { return nil }
            bits = (bits << 6 | digit) & 0xFFFF
            count += 6
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> count))
            }
        }
        return bytes
    }
}
