import Foundation
import LarderTestSupport

/// A model with fields of all kinds, filled at random.
struct Everything: Codable, Equatable {
    enum Form: Codable, Equatable {
        case none
        case circle(radius: Double)
        case named(String, sides: Int)
        case nested([Form])
    }
    enum Shelf: String, Codable, Equatable, CaseIterable, CodingKeyRepresentable { case upper, lower, middle }
    enum Level: Int, Codable, Equatable, CaseIterable {
        case one = 1
        case two
    }

    var flag: Bool
    var text: String
    var name: String?
    var int: Int, int8: Int8, int16: Int16, int32: Int32, int64: Int64, int128: Int128
    var uint: UInt, uint8: UInt8, uint16: UInt16, uint32: UInt32, uint64: UInt64, uint128: UInt128
    var double: Double
    var float: Float
    var maybeInt: Int?, maybeDouble: Double?, maybeFlag: Bool?
    var date: Date
    var data: Data
    var url: URL?
    var uuid: UUID
    var decimal: Decimal
    var form: Form
    var shelf: Shelf
    var level: Level
    var strings: [String]
    var doubles: [Double]
    var optionals: [Int?]
    var nested: [[UInt8]]
    var byName: [String: Int]
    var byNumber: [Int: String]
    var byShelf: [Shelf: Double]
    var byDouble: [Double: String]
    var byNameDeep: [String: [String: [Int?]]]
    var set: Set<Int>
    var range: Range<Int>
    var children: [Everything]
}

extension Everything {
    static func random(_ random: inout SeededGenerator, depth: Int = 2) -> Everything {
        func some<Value>(_ value: Value) -> Value? { random.next() % 3 == 0 ? nil : value }
        func count(_ most: UInt64 = 4) -> Range<Int> { 0..<Int(random.next() % most) }
        let text = random.text()
        let lower = Int(random.next() % 100)
        return Everything(
            flag: random.next() % 2 == 0, text: text, name: some(random.text()),
            int: random.integer(), int8: random.integer(), int16: random.integer(), int32: random.integer(),
            int64: random.integer(), int128: random.integer(), uint: random.integer(), uint8: random.integer(),
            uint16: random.integer(), uint32: random.integer(), uint64: random.integer(), uint128: random.integer(),
            double: random.double(), float: random.float(), maybeInt: some(random.integer()),
            maybeDouble: some(random.double()), maybeFlag: some(true),
            date: Date(timeIntervalSinceReferenceDate: Double(Int32(truncatingIfNeeded: random.next())) / 1000),
            data: Data(count().map { _ in UInt8(truncatingIfNeeded: random.next()) }),
            url: some(URL(string: "https://example.org/a/\(random.next() % 100)?b=%20&c=/#d")!),
            uuid: UUID(uuidString: random.uuidText())!,
            decimal: Decimal(string: "\(random.integer() as Int32).\(random.next() % 1000)")!,
            form: random.form(), shelf: Shelf.allCases.randomElement(using: &random)!,
            level: Level.allCases.randomElement(using: &random)!,
            strings: count().map { _ in random.text() }, doubles: count().map { _ in random.double() },
            optionals: count().map { _ in some(random.integer()) },
            nested: count().map { _ in count().map { _ in UInt8(truncatingIfNeeded: random.next()) } },
            byName: Dictionary(count(40).map { (random.text() + "\($0)", random.integer()) }) { $1 },
            byNumber: Dictionary(count().map { _ in (random.integer(), random.text()) }) { $1 },
            byShelf: Dictionary(count().map { _ in (Shelf.allCases.randomElement(using: &random)!, random.double()) }) {
                $1
            },
            byDouble: Dictionary(count().map { (Double($0) + 0.5, random.text()) }) { $1 },
            byNameDeep: Dictionary(count().map { _ in (random.text(), [random.text(): [1, nil]]) }) { $1 },
            set: Set(count().map { _ in random.integer() as Int }), range: lower..<lower + 7,
            children: depth == 0 ? [] : count(3).map { _ in Everything.random(&random, depth: depth - 1) })
    }
}

extension SeededGenerator {
    /// Returns a random integer with any number of digits.
    mutating func integer<Value: FixedWidthInteger>() -> Value {
        switch next() % 8 {
        case 0: return .min
        case 1: return .max
        case 2: return 0
        default:
            let wide = UInt128(next()) << 64 | UInt128(next())
            return Value(truncatingIfNeeded: Int128(truncatingIfNeeded: wide) >> Int128(next() % 127))
        }
    }

    /// Returns a random finite number, including those that are hard to write and read.
    mutating func double() -> Double {
        switch next() % 6 {
        case 0: return Double(Int64(bitPattern: next()) >> Int64(next() % 63))
        case 1: return Double(Int32(truncatingIfNeeded: next())) / 100
        case 2:
            return [-0.0, 0, 0.1, .leastNonzeroMagnitude, .greatestFiniteMagnitude, 0x1p53, 1e22, 1e23][
                Int(next() % 8)]
        default:
            let value = Double(bitPattern: next())
            return value.isFinite ? value : 1.5
        }
    }

    mutating func float() -> Float {
        let value = Float(bitPattern: UInt32(truncatingIfNeeded: next()))
        // Replace subnormal numbers, which Foundation does not read back.
        return value.isNormal ? value : [-0.0, 0.1, 16_777_216, 3.25][Int(next() % 4)]
    }

    mutating func text() -> String {
        let pieces = [
            "a", "key", "quite a long piece of plain text, ", "\"", "\\", "/", "\u{0}", "\u{1f}", "\u{7f}",
            "\n\r\t\u{8}\u{c}",
            "é", "e\u{301}", "一本书", "👩‍👩‍👧", "\u{2028}", "\u{ffff}", "\u{10ffff}", "K", "\u{212A}", " ", "{}[]:,",
            "\u{e000}",
        ]
        return (0..<next() % 6).map { _ in pieces[Int(next() % UInt64(pieces.count))] }.joined()
    }

    mutating func uuidText() -> String {
        let hex = String(next(), radix: 16) + String(next(), radix: 16)
        let digits = Array((hex + String(repeating: "7", count: 32)).prefix(32))
        let groups: [Range<Int>] = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32]
        return groups.map { String(digits[$0]) }.joined(separator: "-")
    }

    mutating func form(_ depth: Int = 2) -> Everything.Form {
        switch next() % 4 {
        case 0: return .none
        case 1: return .circle(radius: double())
        case 2: return .named(text(), sides: integer())
        default: return depth == 0 ? .none : .nested((0..<next() % 3).map { _ in form(depth - 1) })
        }
    }
}
