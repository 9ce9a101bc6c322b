import Foundation
import LarderJSONCoding
import LarderTestSupport
import Testing

/// Encodes and decodes random models and values, and compares the results with those of Foundation.
@Suite struct RoundTripTests {
    private func generators(_ count: Int, _ test: String = #function) -> [SeededGenerator] {
        let seed = testSeed(test)
        return (0..<UInt64(count)).map { SeededGenerator(seed: seed &+ $0) }
    }

    @Test func randomModelsRoundTripLikeFoundation() {
        for var random in generators(150) {
            expectSameRoundTrip(Everything.random(&random))
        }
    }

    @Test func randomTopLevelValuesRoundTripLikeFoundation() {
        for var random in generators(200) {
            expectSameRoundTrip(random.double())
            expectSameRoundTrip(random.float())
            expectSameRoundTrip(random.text())
            expectSameRoundTrip(random.integer() as Int)
            expectSameRoundTrip(random.integer() as UInt64)
            expectSameRoundTrip(random.integer() as Int8)
            expectSameRoundTrip(random.integer() as Int128)
            expectSameRoundTrip([random.text(): random.form()])
            expectSameRoundTrip([[random.double()], [], [random.double(), random.double()]])
            expectSameRoundTrip(Optional<[String?]>.some([random.text(), nil]))
        }
    }

    /// Doubles of all classes of bit patterns: the shortest text is written, and all texts are read exactly.
    @Test func doublesOfAllMagnitudesRoundTripExactly() throws {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<4000 {
            let value = Double(bitPattern: random.next())
            guard value.isFinite else { continue }
            let text = try JSONCoder().encode(value)
            #expect(try JSONCoder().decode(Double.self, from: text) == value)
            // More and fewer digits than are needed, without and with an exponent.
            for format in ["%.17g", "%.6g", "%.25g", "%.3f", "%.20e"] {
                let text = String(format: format, value)
                guard text.count < 60 else { continue }
                let ours = try? JSONCoder().decode(Double.self, from: Array(text.utf8))
                #expect(ours == Double(text) || Double(text) == 0 || Double(text)?.isFinite != true, "\(text)")
            }
        }
    }

    /// Decimal numbers below and above the limits up to which one floating-point operation rounds correctly.
    @Test func shortDecimalNumbersAreRoundedCorrectly() {
        var random = SeededGenerator(seed: 8)
        for _ in 0..<3000 {
            let digits = random.next() >> (random.next() % 64)
            let exponent = Int(random.next() % 60) - 30
            let text = "\(digits)e\(exponent)"
            let ours = try? JSONCoder().decode(Double.self, from: Array(text.utf8))
            #expect(ours == Double(text), "\(text)")
            let single = try? JSONCoder().decode(Float.self, from: Array(text.utf8))
            if let expected = Float(text), expected.isNormal { #expect(single == expected, "\(text)") }
        }
    }

    @Test func numbersThatAreNotFiniteAreRefusedLikeFoundation() {
        struct Ratios: Codable { var values: [Double] }
        expectSameWriting(Double.nan)
        expectSameWriting(["a": Double.infinity])
        expectSameWriting(Ratios(values: [1, -.infinity]))
        expectSameWriting([[Float.nan]])
        expectSameWriting(["a": ["b": [Optional(Float.infinity)]]])
        expectSameWriting(Date(timeIntervalSinceReferenceDate: .nan))
    }

    /// For a Decimal that is not a number, Foundation writes `NaN`, which no decoder can read.
    @Test func aDecimalThatIsNotANumberIsNotEncoded() throws {
        struct Price: Codable { var amounts: [Decimal] = [1, .nan] }
        /// Encodes into a nested container after a later field, so Larder leaves the encoding to Foundation.
        struct Irregular: Encodable {
            enum Key: CodingKey { case a, b, c }
            let number: Decimal
            func encode(to encoder: any Encoder) throws {
                var fields = encoder.container(keyedBy: Key.self)
                var a = fields.nestedUnkeyedContainer(forKey: .a)
                try fields.encode(1, forKey: .b)
                try a.encode("\"Not N\\")
                try fields.encode(number, forKey: .c)
            }
        }
        #expect(outcome { try JSONCoder().encode(Decimal.nan) } == "invalidValue NaN at ")
        #expect(
            outcome { try JSONCoder().encode(["p": Price()]) } == "invalidValue NaN at p/-.amounts/-.Index 1/1")
        #expect(outcome { try JSONCoder().encode(Irregular(number: .nan)) } == "invalidValue NaN at ")
        _ = try JSONCoder().encode(Irregular(number: 5))
        #expect(try JSONCoder().decode([Decimal].self, from: JSONCoder().encode([Decimal(5)])) == [5])
    }

    @Test func fieldsAreWrittenInTheOrderOfTheModel() throws {
        struct Ordered: Codable { var z = 1, a = 2, m = 3 }
        #expect(String(decoding: try JSONCoder().encode(Ordered()), as: UTF8.self) == #"{"z":1,"a":2,"m":3}"#)
    }

    @Test func longTextsAndManyElementsRoundTripLikeFoundation() {
        expectSameRoundTrip(String(repeating: "long “text” \n with \\ and \u{1}", count: 10_000))
        expectSameRoundTrip(Array(0..<20_000))
        expectSameRoundTrip(Dictionary(uniqueKeysWithValues: (0..<5000).map { ("key é \($0)", [$0]) }))
        expectSameRoundTrip(Dictionary(uniqueKeysWithValues: (0..<500).map { ($0, "\($0)") }))
        // A buffer that has grown this long is not reused for the next document, which must be correct nevertheless.
        expectSameRoundTrip(String(repeating: "x", count: 3 << 20))
        expectSameRoundTrip(["a": 1])
    }
}
