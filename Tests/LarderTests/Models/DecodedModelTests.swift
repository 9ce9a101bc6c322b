import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

/// A model that counts how often it was decoded, by any thread.
private struct Counted: Codable, Equatable {
    static let decodings = Atomic<Int>(0)
    var number: Int

    init(_ number: Int) { self.number = number }
    init(from decoder: any Decoder) throws {
        Self.decodings.add(1, ordering: .relaxed)
        number = try decoder.singleValueContainer().decode(Int.self)
    }
    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(number)
    }
}

/// A model that would be shared between readers if it did not conform to ``DecodedEachTime``.
private struct Anew: Codable, Sendable, DecodedEachTime {
    var number: Int
    var identity = Object()
    final class Object: Sendable {}
    enum CodingKeys: String, CodingKey { case number }
}

private final class Shared: Codable {
    var number: Int
    init(_ number: Int) { self.number = number }
}

/// A model of several lines of text, each in a separate allocation. All lines of a page are equal, so mixed pages can
/// be detected.
private struct Page: Codable {
    var lines: [String]

    init(_ number: Int) { lines = (0..<8).map { _ in "page \(number), in a line that is too long to be kept inline" } }
    var isWhole: Bool { lines.count == 8 && lines.allSatisfy { $0 == lines[0] && $0.hasSuffix("inline") } }
}

/// Tests that the decoded models of frequently read entries are kept. The tests count how often models are decoded,
/// because nothing else shows this.
@Suite(.serialized) struct DecodedModelTests {
    let work: Workspace

    init() throws { work = try Workspace() }

    /// Returns how many times `Counted` was decoded while `body` ran.
    private func decodings(_ body: () throws -> Void) rethrows -> Int {
        let before = Counted.decodings.load(ordering: .relaxed)
        try body()
        return Counted.decodings.load(ordering: .relaxed) - before
    }

    @Test func aModelThatIsReadRepeatedlyIsDecodedOnce() throws {
        let cache = try work.cache()
        try cache.set(Counted(1), forKey: "k")
        let count = try decodings {
            for _ in 0..<100 {
                let read = try cache.value(Counted.self, forKey: "k")
                #expect(read == Counted(1))
            }
        }
        #expect(count == 1)
    }

    /// A list of texts that takes a large part of the memory budget.
    private struct Large: Codable, Equatable {
        static let decodings = Atomic<Int>(0)
        var texts: [String]

        init(bytes: Int) {
            texts = (0..<bytes / 1_024).map { "\($0)".padding(toLength: 1_000, withPad: "x", startingAt: 0) }
        }
        init(from decoder: any Decoder) throws {
            Self.decodings.add(1, ordering: .relaxed)
            texts = try decoder.singleValueContainer().decode([String].self)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(texts)
        }
    }

    @Test("a model that takes an eighth of the memory stays decoded, whether stored now or read from the disk")
    func aLargeModelStaysDecoded() throws {
        let large = Large(bytes: 2 << 20)
        for round in 0..<2 {
            let cache = try work.cache()
            if round == 0 { try cache.set(large, forKey: "k") }
            let before = Large.decodings.load(ordering: .relaxed)
            for _ in 0..<10 { #expect(try cache.value(Large.self, forKey: "k")?.texts.count == large.texts.count) }
            // The first read, from the disk, does not keep the model that it decodes. The next read decodes again, and
            // keeps it.
            #expect(Large.decodings.load(ordering: .relaxed) - before <= 2)
            cache.close()
        }
    }

    @Test("large models that do not fit into memory are read correctly within the budget")
    func moreLargeModelsThanFitIntoMemory() throws {
        let cache = try work.cache()
        for number in 0..<12 { try cache.set(Large(bytes: (2 << 20) + number * 1_024), forKey: "\(number)") }
        _ = try cache.sweep()
        for _ in 0..<3 {
            for number in 0..<12 {
                #expect(try cache.value(Large.self, forKey: "\(number)")?.texts.count == 2_048 + number)
            }
        }
        let statistics = try cache.statistics()
        #expect(statistics.memoryBytes <= statistics.memoryLimitBytes)
    }

    @Test func withoutDecodedModelsEveryReadDecodes() throws {
        let cache = try work.cache { $0.decodedModels = false }
        try cache.set(Counted(1), forKey: "k")
        #expect(try decodings { for _ in 0..<10 { _ = try cache.value(Counted.self, forKey: "k") } } == 10)
    }

    @Test func withoutAMemoryTierEveryReadDecodes() throws {
        let cache = try work.cache { $0.memoryBytes = 0 }
        try cache.set(Counted(1), forKey: "k")
        #expect(try decodings { for _ in 0..<10 { _ = try cache.value(Counted.self, forKey: "k") } } == 10)
    }

    /// A write replaces the decoded model, whichever call and whichever handle of the process makes it.
    @Test func everyWriteReplacesTheDecodedModel() throws {
        let cache = try work.cache()
        let other = try work.cache()
        func read() throws -> Int? { try cache.value(Counted.self, forKey: "k")?.number }
        let writes: [(Int?, () throws -> Void)] = [
            (1, { try cache.set(Counted(1), forKey: "k") }),
            (2, { try other.set(Counted(2), forKey: "k") }),
            (3, { try other.setBytes(Array("3".utf8), forKey: "k") }),
            (4, { try other.batch { try $0.set(Counted(4), forKey: "k") } }),
            (nil, { try other.remove("k") }),
            (5, { try other.set(Counted(5), forKey: "k") }),
            (nil, { try other.batch { $0.remove("k") } }),
            (6, { try other.set(Counted(6), forKey: "k") }),
            (nil, { try other.removeAll() }),
            (7, { try other.set(Counted(7), forKey: "k") }),
            (nil, { try other.remove(prefix: "k") }),
            (8, { try other.set(Counted(8), forKey: "k") }),
            (8, { try other.touch("k", policy: .never) }),
        ]
        for (expected, write) in writes {
            try write()
            for _ in 0..<3 { #expect(try read() == expected) }
        }
    }

    @Test func anExpiredModelIsNotReturned() throws {
        let cache = try work.cache(policy: .high)
        try cache.set(Counted(1), forKey: "governed")
        try cache.set(Counted(2), forKey: "own", policy: .seconds(5))
        for _ in 0..<2 {
            #expect(try cache.value(Counted.self, forKey: "governed") != nil)
            #expect(try cache.value(Counted.self, forKey: "own") != nil)
        }
        work.time.advance(milliseconds: 5000)
        #expect(try cache.value(Counted.self, forKey: "own") == nil)
        #expect(try cache.value(Counted.self, forKey: "governed") != nil)
        try cache.setPolicy(.highest)
        work.time.advance(milliseconds: 5000)
        #expect(try cache.value(Counted.self, forKey: "governed") == nil)
    }

    @Test func readingAnotherTypeDecodesTheEntryAsThatType() throws {
        let cache = try work.cache()
        try cache.set(5, forKey: "k")
        for _ in 0..<3 {
            #expect(try cache.value(Counted.self, forKey: "k") == Counted(5))
            #expect(try cache.value(Int.self, forKey: "k") == 5)
            #expect(try cache.value(Double.self, forKey: "k") == 5)
            expectError(.decoding) { _ = try cache.value(String.self, forKey: "k") }
        }
    }

    /// Two caches on one database decode dates differently. Each gets the models of its own codec.
    @Test func eachCodecGetsItsOwnDecodedModel() throws {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .secondsSince1970
        let standard = try work.cache()
        let own = try work.cache { $0.codec = .json(encoder: JSONEncoder(), decoder: decoder) }
        try standard.set(100.0, forKey: "k")
        for _ in 0..<3 {
            #expect(try standard.value(Date.self, forKey: "k") == Date(timeIntervalSinceReferenceDate: 100))
            #expect(try own.value(Date.self, forKey: "k") == Date(timeIntervalSince1970: 100))
        }
    }

    @Test func readersNeverShareObjects() throws {
        let cache = try work.cache()
        try cache.set(Shared(1), forKey: "one")
        try cache.set([Shared(1)], forKey: "many")
        try cache.set(["a": [Shared(1)]], forKey: "deep")
        for key in ["one", "many", "deep"] {
            func read() throws -> Shared? {
                switch key {
                case "one": try cache.value(Shared.self, forKey: key)
                case "many": try cache.value([Shared?].self, forKey: key)?[0]
                default: try cache.value([String: [Shared]].self, forKey: key)?["a"]?[0]
                }
            }
            let first = try read()
            first?.number = 2
            let second = try read()
            #expect(first != nil && second != nil && first !== second && second?.number == 1)
        }
        try cache.set(Anew(number: 1), forKey: "anew")
        let anew = try (0..<3).map { _ in try cache.value(Anew.self, forKey: "anew")?.identity }
        #expect(anew[0] != nil && anew[0] !== anew[1] && anew[1] !== anew[2])
    }

    @Test func snapshotsDoNotReturnModelsOfLaterWrites() throws {
        let cache = try work.cache()
        try cache.set(Counted(1), forKey: "k")
        _ = try cache.value(Counted.self, forKey: "k")
        let snapshot = try cache.snapshot()
        try cache.set(Counted(2), forKey: "k")
        for _ in 0..<3 {
            #expect(try snapshot.value(Counted.self, forKey: "k") == Counted(1))
            #expect(try cache.value(Counted.self, forKey: "k") == Counted(2))
        }
    }

    @Test func readsOfClosedAndDeletedCachesThrow() throws {
        let cache = try work.cache()
        try cache.set(Counted(1), forKey: "k")
        _ = try cache.value(Counted.self, forKey: "k")
        _ = try cache.value(Counted.self, forKey: "k")
        try work.cache().delete()
        expectError(.deleted) { _ = try cache.value(Counted.self, forKey: "k") }
        cache.close()
        expectError(.closed) { _ = try cache.value(Counted.self, forKey: "k") }
        expectError(.invalidArgument) {
            _ = try work.cache("other").value(Counted.self, forKey: String(repeating: "k", count: 65_537))
        }
    }

    /// The models exceed the memory budget, so that not all of them are kept. All reads are correct.
    @Test func moreModelsThanFitIntoMemoryAreReadCorrectly() throws {
        let cache = try work.cache { $0.memoryBytes = 200_000 }
        func model(_ index: Int) -> Large {
            var model = Large(bytes: 1_024)
            model.texts.append("\(index)")
            return model
        }
        for index in 0..<500 { try cache.set(model(index), forKey: "k\(index)") }
        let before = Large.decodings.load(ordering: .relaxed)
        for _ in 0..<2 {
            for index in 0..<500 { #expect(try cache.value(Large.self, forKey: "k\(index)") == model(index)) }
        }
        #expect(Large.decodings.load(ordering: .relaxed) - before > 500)
    }

    /// A model that a reader has obtained stays intact while its entry is overwritten, removed and evicted.
    @Test func aModelOutlivesItsEntry() async throws {
        let cache = try work.cache { $0.memoryBytes = 100_000 }
        let isDone = Guarded(false)
        try await cache.set(Page(0), forKey: "k")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { isDone.value = true }
                for number in 1...300 {
                    try cache.set(Page(number), forKey: "k")
                    if number % 10 == 0 { try cache.remove("k") }
                    try cache.set(Page(number), forKey: "k\(number)")
                }
            }
            for _ in 0..<2 {
                group.addTask {
                    var pages: [Page?] = []
                    while !isDone.value {
                        pages.append(try cache.value(Page.self, forKey: "k"))
                        if pages.count == 32 {
                            #expect(pages.allSatisfy { $0?.isWhole ?? true })
                            pages = []
                        }
                    }
                    #expect(pages.allSatisfy { $0?.isWhole ?? true })
                }
            }
            try await group.waitForAll()
        }
    }

    /// Readers never see a model that was replaced before their call.
    @Test func readersNeverGetAModelReplacedBeforeTheirCall() async throws {
        let cache = try work.cache()
        let written = Guarded(0)
        try await cache.set(Counted(0), forKey: "k")
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for number in 1...300 {
                    try? cache.set(Counted(number), forKey: "k")
                    written.value = number
                }
            }
            for _ in 0..<3 {
                group.addTask {
                    while true {
                        let floor = written.value
                        let read = (try? cache.value(Counted.self, forKey: "k"))?.number ?? -1
                        #expect(read >= floor)
                        if floor == 300 || read < floor { return }
                    }
                }
            }
        }
    }
}
