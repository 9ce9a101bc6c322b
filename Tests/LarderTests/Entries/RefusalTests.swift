import Foundation
import Larder
import Testing

/// Tests of values and calls that are refused, and of the error messages.
@Suite struct RefusalTests {
    private struct Price<Number: Codable>: Codable { var amount: Number }

    /// An array in an array in an array.
    private indirect enum Nest: Encodable {
        case leaf
        case around(Nest)

        init(depth: Int) {
            self = .leaf
            for _ in 1..<depth { self = .around(self) }
        }

        func encode(to encoder: any Encoder) throws {
            var list = encoder.unkeyedContainer()
            if case .around(let inner) = self { try list.encode(inner) }
        }
    }

    let work: Workspace
    let cache: Cache

    init() throws {
        work = try Workspace()
        cache = try work.cache()
    }

    private static let codecs: [ModelCodec] = [.standard, .json, .json(encoder: JSONEncoder(), decoder: JSONDecoder())]

    @Test func aDecimalThatIsNotANumberIsRefused() throws {
        for codec in Self.codecs {
            let cache = try work.cache { $0.codec = codec }
            try cache.removeAll()
            expectError(.encoding) { try cache.set(Decimal.nan, forKey: "k") }
            expectError(.encoding) { try cache.set([Decimal(1), .nan], forKey: "k") }
            expectError(.encoding) { try cache.set(Price(amount: Decimal.nan), forKey: "k") }
            expectError(.encoding) { try cache.set(["k": Price(amount: Optional(Decimal.nan))]) }
            expectError(.encoding) { try cache.batch { try $0.set(Decimal.nan, forKey: "k") } }
            #expect(try cache.count() == 0)
            try cache.set(["N": Price(amount: Decimal(5))], forKey: "k")
            #expect(try cache.value([String: Price<Decimal>].self, forKey: "k")?["N"]?.amount == 5)
        }
        // A property list can hold NaN.
        let cache = try work.cache { $0.codec = .propertyList }
        try cache.set([Decimal.nan], forKey: "k")
        #expect(try cache.value([Decimal].self, forKey: "k")?.first?.isNaN == true)
    }

    @Test func aNumberThatIsNotFiniteIsNamedInTheError() throws {
        for codec in Self.codecs {
            let cache = try work.cache { $0.codec = codec }
            #expect(
                expectError(.encoding) { try cache.set(Price(amount: Double.nan), forKey: "k") }
                    .hasSuffix("a value of type Double is not finite at '.amount'"))
            #expect(
                expectError(.encoding) { try cache.set([Float.infinity], forKey: "k") }
                    .hasSuffix("a value of type Float is not finite at '[0]'"))
            #expect(
                expectError(.encoding) { try cache.set(Decimal.nan, forKey: "k") }
                    .hasSuffix("a value of type Decimal is not finite"))
        }
        #expect(
            expectError(.encoding) { try cache.set(Price(amount: Decimal.nan), forKey: "k") }
                .hasSuffix("a value of type Decimal is not finite at '.amount'"))
    }

    /// Printing the whole error must work too: describing a date that is not finite traps.
    @Test func aDateThatIsNotFiniteIsNamedInTheError() throws {
        for seconds in [Double.nan, .infinity] {
            do {
                try cache.set(Price(amount: Date(timeIntervalSince1970: seconds)), forKey: "k")
                Issue.record("it was stored")
            } catch {
                #expect(error.description.hasSuffix("a value of type Date is not finite at '.amount'"))
                #expect(!"\(String(describing: error.underlying))".isEmpty)
            }
        }
    }

    @Test func theErrorForTooDeepModelsNamesTheLimit() throws {
        for codec in Self.codecs {
            let cache = try work.cache { $0.codec = codec }
            try cache.set(Nest(depth: 511), forKey: "k")
            for depth in [512, 2_000] {
                let text = expectError(.encoding) { try cache.set(Nest(depth: depth), forKey: "deep") }
                #expect(text.hasSuffix("it nests more than 511 objects and arrays, which is the limit"))
            }
            #expect(try !cache.contains("deep"))
        }
    }

    /// Foundation recurses for every level of nesting, and crashes when its stack is exhausted. Larder therefore limits
    /// the levels.
    @Test func veryDeepModelsDoNotCrash() throws {
        for codec in [ModelCodec.standard, .json] {
            let cache = try work.cache { $0.codec = codec }
            let text = expectError(.encoding) { try cache.set(Nest(depth: 20_000), forKey: "deep") }
            #expect(text.hasSuffix("it nests more than 511 objects and arrays, which is the limit"))
        }
    }

    @Test func aDeadlineThatIsNotANumberIsNamedInTheError() throws {
        let text = expectError(.invalidArgument) {
            try cache.set(1, forKey: "k", policy: .until(Date(timeIntervalSince1970: .nan)))
        }
        #expect(text.hasSuffix("the deadline is not a number (NaN)"))
        try cache.set(1, forKey: "k", policy: .until(Date(timeIntervalSince1970: -.infinity)))
        #expect(try !cache.contains("k"))
    }

    @Test func errorsOfADeletedDatabaseNameTheCall() throws {
        try cache.set(1, forKey: "k")
        try cache.delete()
        let calls: [(String, () throws -> Void)] = [
            ("delete", { try cache.delete() }), ("set", { try cache.set(1, forKey: "k") }),
            ("remove", { try cache.remove("k") }), ("touch", { try cache.touch("k", policy: .never) }),
            ("batch", { try cache.batch { $0.remove("k") } }), ("contains", { _ = try cache.contains("k") }),
            ("info", { _ = try cache.info(forKey: "k") }),
            ("update", { try cache.update(Int.self, forKey: "k") { $0 = 1 } }),
            ("increment", { try cache.increment("k") }),
            ("get", { _ = try cache.values(Int.self, forKeys: ["k"]) }),
        ]
        for (name, call) in calls {
            let text = expectError(.deleted) { try call() }
            #expect(text.hasPrefix("\(name) in database 'books'"), "\(text)")
        }
    }

    @Test func emptyRequestsOfAClosedCacheThrowClosed() throws {
        let snapshot = try cache.snapshot()
        cache.close()
        snapshot.close()
        expectError(.closed) { _ = try cache.values(Int.self, forKeys: [String]()) }
        expectError(.closed) { _ = try cache.values(Price<Int>.self, forKeys: [String]()) }
        expectError(.closed) { _ = try cache.values(Int.self, forKeys: [String](), notFound: 0) }
        expectError(.closed) { _ = try snapshot.values(Int.self, forKeys: [String]()) }
        expectError(.closed) { try cache.remove([String]()) }
        expectError(.closed) { try cache.set([String: Int]()) }
        expectError(.closed) { try cache.apply(cache.makeBatch()) }
    }

    @Test func rawTextCanBeReadAsAnOptionalString() throws {
        for text in ["", "plain", "null", "5", "\"quoted\""] {
            try cache.setBytes(Array(text.utf8), forKey: "k")
            #expect(try cache.value(String?.self, forKey: "k") == .some(text))
            #expect(try cache.value(String.self, forKey: "k") == text)
        }
        try cache.setBytes([0xFF], forKey: "k")
        let text = expectError(.decoding) { _ = try cache.value(String?.self, forKey: "k") }
        #expect(text.contains("UTF-8"))
    }
}
