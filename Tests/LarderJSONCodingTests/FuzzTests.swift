import Foundation
import LarderJSONCoding
import LarderTestSupport
import Testing

/// Tests that randomly damaged texts cause no crash, and have the same outcome as with Foundation.
@Suite struct FuzzTests {
    private let pieces = [
        "\"", "\\", "{", "}", "[", "]", ",", ":", "null", "true", "1", "-", ".", "e9", "0", "\\u", "\\ud800", "\u{1}",
        " ", "é", "\"a\":",
        "00", "1e400", "\u{feff}",
    ].map { Array($0.utf8) }

    private func damaged(_ text: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
        var text = text
        for _ in 0...random.next() % 3 {
            let place = Int(random.next() % UInt64(text.count + 1))
            let length = min(Int(random.next() % 4), text.count - place)
            switch random.next() % 5 {
            case 0: text.removeSubrange(place..<place + length)
            case 1: text.insert(contentsOf: pieces.randomElement(using: &random)!, at: place)
            case 2: text = Array(text.prefix(place))
            case 3 where place < text.count: text[place] = UInt8(truncatingIfNeeded: random.next())
            default:
                let other = Int(random.next() % UInt64(text.count + 1))
                text.insert(
                    contentsOf: text[min(place, other)..<min(max(place, other), min(place, other) + 20)], at: place)
            }
        }
        return text
    }

    @Test func damagedModelsAreDecodedLikeFoundation() throws {
        struct Small: Codable {
            var a: Int
            var b: [String?]
            var c: Doubles
            var d: Everything.Form?
            var e: Bool?
        }
        let first = testSeed()
        for round in 0..<3000 {
            let seed = first &+ UInt64(round)
            var random = SeededGenerator(seed: seed)
            let model = Small(
                a: Int(random.next() % 1000), b: [random.text(), nil],
                c: Doubles(values: [random.text(): random.double()]),
                d: random.form(),
                e: random.next() % 2 == 0 ? true : nil)
            let text = damaged(try JSONCoder().encode(model), &random)
            guard expectSameReading(Small.self, text) else {
                Issue.record("seed \(seed)")
                return
            }
            // Which of several errors comes first depends on the order of Foundation's dictionary, so compare only the
            // values.
            let ours = try? JSONCoder().decode([String: Everything.Form].self, from: text)
            #expect(ours == (try? Reference.decode([String: Everything.Form].self, text)), "seed \(seed)")
            let numbers = try? JSONCoder().decode(WithNumbers.self, from: text)
            #expect(numbers == (try? Reference.decode(WithNumbers.self, text)), "seed \(seed)")
        }
    }

    private struct WithNumbers: Decodable, Equatable {
        var c: [String: Double]
    }

    /// A dictionary that is decoded and described in the order of its names, so that all coders find the same error
    /// first.
    private struct Doubles: Codable, CustomStringConvertible {
        var values: [String: Double]

        var description: String { "\(values.sorted { $0.key < $1.key })" }

        struct Name: CodingKey {
            var stringValue: String
            var intValue: Int? { nil }

            init(stringValue: String) { self.stringValue = stringValue }

            init?(intValue: Int) { nil }
        }

        init(values: [String: Double]) { self.values = values }

        init(from decoder: any Decoder) throws {
            let fields = try decoder.container(keyedBy: Name.self)
            values = [:]
            for name in fields.allKeys.sorted(by: { $0.stringValue < $1.stringValue }) {
                values[name.stringValue] = try fields.decode(Double.self, forKey: name)
            }
        }

        func encode(to encoder: any Encoder) throws {
            try values.encode(to: encoder)
        }
    }

    @Test func damagedModelsOfAllTypesAreDecodedLikeFoundation() throws {
        let first = testSeed()
        for round in 0..<150 {
            let seed = first &+ UInt64(round)
            var random = SeededGenerator(seed: seed)
            let model = Everything.random(&random, depth: 1)
            let text = damaged(try JSONCoder().encode(model), &random)
            let ours = try? JSONCoder().decode(Everything.self, from: text)
            let theirs = try? Reference.decode(Everything.self, text)
            #expect(ours == theirs, "seed \(seed)")
        }
    }

    @Test func randomBytesAreDecodedLikeFoundation() {
        var random = SeededGenerator(seed: 3)
        for _ in 0..<3000 {
            let text = (0..<random.next() % 12).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            expectSameReading([Int].self, text)
            expectSameReading(String.self, text)
        }
    }
}
