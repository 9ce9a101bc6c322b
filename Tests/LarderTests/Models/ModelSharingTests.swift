import Larder
import Synchronization
import Testing

/// A class that is not Sendable, because it is mutable.
private final class Box: Codable {
    var number = 1
}

private struct Holder: Codable {
    var box = Box()
}

private enum Choice: Codable {
    case held(Box)
    case none
}

/// A value type without classes in it. Counts how often it was decoded.
private struct Plain: Codable, Equatable {
    static let decodings = Atomic<Int>(0)
    var number = 1

    init() {}
    init(from decoder: any Decoder) throws {
        Self.decodings.add(1, ordering: .relaxed)
        number = try decoder.singleValueContainer().decode(Int.self)
    }
    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(number)
    }
}

/// Tests which decoded models are shared between readers: those whose type the compiler knows to be Sendable.
@Suite(.serialized) struct ModelSharingTests {
    let work: Workspace
    let cache: Cache

    init() throws {
        work = try Workspace()
        cache = try work.cache()
    }

    private func decodings(_ body: () throws -> Void) rethrows -> Int {
        let before = Plain.decodings.load(ordering: .relaxed)
        try body()
        return Plain.decodings.load(ordering: .relaxed) - before
    }

    /// For every call that returns a model: changes by one reader are not visible to others.
    @Test func modelsWithObjectsAreNotShared() throws {
        try cache.set(Holder(), forKey: "k")
        let snapshot = try cache.snapshot()
        let doors: [(String, () throws -> Holder?)] = [
            ("value", { try cache.value(Holder.self, forKey: "k") }),
            ("subscript", { try cache["k", as: Holder.self] }),
            ("values", { try cache.values(Holder.self, forKeys: ["k"])["k"] }),
            ("in order", { try cache.values(Holder.self, forKeys: ["k"], notFound: Holder())[0] }),
            ("entries", { try cache.entries(of: Holder.self).values()[0] }),
            ("snapshot", { try snapshot.value(Holder.self, forKey: "k") }),
        ]
        for (name, read) in doors {
            for (other, readAgain) in doors {
                let mine = try read()
                mine?.box.number = 2
                let yours = try readAgain()
                #expect(mine != nil && mine?.box !== yours?.box && yours?.box.number == 1, "\(name), then \(other)")
            }
        }
    }

    @Test func collectionsAndCasesWithObjectsAreNotShared() throws {
        try cache.set([Holder()], forKey: "many")
        try cache.set(Choice.held(Box()), forKey: "case")
        try cache.set(["a": Holder()], forKey: "named")
        for _ in 0..<3 {
            let many = try cache.value([Holder].self, forKey: "many")
            let named = try cache.value([String: Holder?].self, forKey: "named")
            #expect(many?[0].box.number == 1 && named?["a"]??.box.number == 1)
            many?[0].box.number = 2
            named?["a"]??.box.number = 2
            guard case .held(let box) = try cache.value(Choice.self, forKey: "case") else {
                Issue.record("there is no such case")
                return
            }
            #expect(box.number == 1)
            box.number = 2
        }
    }

    /// Regression test: this program compiles without a warning, and crashed.
    @Test func tasksCanChangeTheirOwnCopyOfAModel() async throws {
        try await cache.set(Holder(), forKey: "k")
        let cache = cache
        await withTaskGroup(of: Bool.self) { group in
            for number in 0..<4 {
                group.addTask {
                    for _ in 0..<500 {
                        guard let mine = try? cache.value(Holder.self, forKey: "k"), mine.box.number == 1 else {
                            return false
                        }
                        mine.box.number = number
                    }
                    return true
                }
            }
            for await isUnseen in group { #expect(isUnseen) }
        }
    }

    @Test func allReadingCallsShareOneDecodedModel() throws {
        try cache.set(Plain(), forKey: "k")
        let before = Plain.decodings.load(ordering: .relaxed)
        for _ in 0..<10 {
            #expect(try cache.value(Plain.self, forKey: "k") == Plain())
            #expect(try cache["k", as: Plain.self] == Plain())
            #expect(try cache.values(Plain.self, forKeys: ["k", "none"]) == ["k": Plain()])
            #expect(try cache.values(forKeys: ["k", "k"], notFound: Plain()) == [Plain(), Plain()])
        }
        #expect(Plain.decodings.load(ordering: .relaxed) - before == 1)
    }

    /// Generic code without a `Sendable` constraint is correct, and decodes each time.
    @Test func genericCodeSharesOnlySendableModels() throws {
        func read<Model: Codable>(_ type: Model.Type) throws -> Model? { try cache.value(type, forKey: "k") }
        func readShared<Model: Codable & Sendable>(_ type: Model.Type) throws -> Model? {
            try cache.value(type, forKey: "k")
        }
        try cache.set(Plain(), forKey: "k")
        let own = try decodings { for _ in 0..<5 { _ = try read(Plain.self) } }
        let shared = try decodings { for _ in 0..<5 { _ = try readShared(Plain.self) } }
        #expect(own == 5 && shared == 1)
        try cache.set(Holder(), forKey: "k")
        let mine = try read(Holder.self)
        mine?.box.number = 2
        #expect(try read(Holder.self)?.box.number == 1)
    }

    /// Reads many keys at one instant: some are in memory with a decoded model, some without, and some are not in
    /// memory at all.
    @Test func valuesOfManyKeysAreReturnedInTheOrderOfTheKeys() throws {
        for number in 0..<100 { try cache.set(number, forKey: "k\(number)") }
        for number in stride(from: 0, to: 100, by: 3) { _ = try cache.value(Int.self, forKey: "k\(number)") }
        let keys = (0..<120).map { "k\($0)" }
        for round in 0..<3 {
            let values = try cache.values(Int.self, forKeys: keys, notFound: -1)
            #expect(values == (0..<120).map { $0 < 100 ? $0 : -1 })
            #expect(try cache.values(Int.self, forKeys: keys).count == 100)
            if round == 1 { try cache.sweep() }
        }
        work.time.advance(milliseconds: 3_600_000)
        #expect(try cache.values(Int.self, forKeys: keys).isEmpty)
    }
}
