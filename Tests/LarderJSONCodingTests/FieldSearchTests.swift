import Testing

@testable import LarderJSONCoding

/// A coding key with any name.
private struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

/// Decodes the fields whose names the test sets.
private struct Asking: Decodable {
    static let names = CodingUserInfoKey(rawValue: "names")!
    let values: [Int?]

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Name.self)
        let names = decoder.userInfo[Self.names] as? [String] ?? []
        values = try names.map { try container.decodeIfPresent(Int.self, forKey: Name(stringValue: $0)) }
    }
}

/// Tests of how many comparisons it takes to find the fields of a large object, in any order.
@Suite struct FieldSearchTests {
    private static let count = 40_000

    private static func text(_ names: [String]) -> [UInt8] {
        Array(("{" + names.enumerated().map { "\"\($1)\":\($0)" }.joined(separator: ",") + "}").utf8)
    }

    /// Decodes the fields `asked` from an object with the fields `names`, and counts comparisons.
    private static func search(_ names: [String], _ asked: [String]) throws -> (values: [Int?], comparisons: Int) {
        let state = DecodingState()
        let text = text(names)
        return try text.withUnsafeBytes { bytes in
            #expect(state.open(bytes, [Asking.names: asked]))
            defer { state.close() }
            let read = try state.value(DocumentIndex.root, Asking.self, Place(depth: 0), nil)
            return (read.values, state.core.pointee.comparisonCount)
        }
    }

    @Test func decodingFieldsInTheOrderOfTheTextNeedsNoSearch() throws {
        let names = (0..<Self.count).map { "field\($0)" }
        let (values, comparisons) = try Self.search(names, names)
        #expect(values == Array(0..<Self.count) && comparisons == 0)
    }

    /// In an earlier version, each of these orders took 800 million comparisons.
    @Test(arguments: ["backward", "shuffled", "twice", "absent", "every other"])
    func decodingFieldsInAnyOrderTakesLinearTime(_ order: String) throws {
        let names = (0..<Self.count).map { "field\($0)" }
        let indices: [Int] =
            switch order {
            case "backward": Array((0..<Self.count).reversed())
            case "shuffled": (0..<Self.count).map { $0 * 7919 % Self.count }
            case "twice": (0..<Self.count).flatMap { [$0, $0] }
            case "absent": (0..<Self.count).map { $0 + Self.count }
            default: (0..<Self.count).map { $0 * 2 % Self.count + $0 * 2 / Self.count }
            }
        let (values, comparisons) = try Self.search(names, indices.map { "field\($0)" })
        #expect(values == indices.map { $0 < Self.count ? $0 : nil })
        #expect(comparisons <= 3 * Self.count, "\(comparisons)")
    }

    /// If several fields have one name, the first one is used, however it is found.
    @Test func theFirstOfSeveralFieldsWithTheSameNameIsDecoded() throws {
        let names = (0..<Self.count).map { "field\($0 % 100)" }
        let asked = (0..<Self.count).map { "field\(99 - $0 % 100)" }
        let (values, comparisons) = try Self.search(names, asked)
        #expect(values == (0..<Self.count).map { 99 - $0 % 100 })
        #expect(comparisons <= 3 * Self.count, "\(comparisons)")
    }

    /// A small object may be searched from end to end for a field, but only a few times for each field.
    @Test(arguments: [1, 2, 31, 32, 33, 34, 64, 65, 100])
    func fieldsOfObjectsOfAnySizeAreFoundInAnyOrder(_ count: Int) throws {
        let names = (0..<count).map { "n\($0)" }
        for step in [1, 7, 11, 13] {
            let order = (0..<count).map { $0 * step % count }.reversed() + [count, 0, count - 1]
            let (values, comparisons) = try Self.search(names, order.map { "n\($0)" })
            #expect(values == order.map { $0 < count ? $0 : nil })
            #expect(comparisons <= 35 * order.count)
        }
    }

    /// The searches in each of many objects in one document are counted separately.
    @Test func decodingManyObjectsInOneTextTakesFewComparisons() throws {
        let names = (0..<50).map { "f\($0)" }
        let object = String(decoding: Self.text(names), as: UTF8.self)
        let text = Array(("[" + Array(repeating: object, count: 200).joined(separator: ",") + "]").utf8)
        let state = DecodingState()
        try text.withUnsafeBytes { bytes in
            #expect(state.open(bytes, [Asking.names: Array(names.reversed())]))
            defer { state.close() }
            let read = try state.value(DocumentIndex.root, [Asking].self, Place(depth: 0), nil)
            #expect(read.allSatisfy { $0.values == Array((0..<50).reversed()) })
            #expect(state.core.pointee.comparisonCount <= 200 * 3 * 50)
        }
    }
}
