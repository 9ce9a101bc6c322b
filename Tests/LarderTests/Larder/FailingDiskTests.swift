import Larder
import LarderEngine
import Synchronization
import Testing

/// A disk that fails for a while, as a full one does.
private final class Disk: Sendable {
    private let isFull = Atomic<Bool>(false)

    func fill() { isFull.store(true, ordering: .relaxed) }
    func empty() { isFull.store(false, ordering: .relaxed) }

    func check() throws(LarderError) {
        if isFull.load(ordering: .relaxed) { throw LarderError(.io, "no space left", operation: "write") }
    }
}

@Suite struct FailingDiskTests {
    let work: Workspace
    private let disk = Disk()
    /// The caches of this test share this engine, because the larder is already open.
    private let engine: Engine

    init() throws {
        work = try Workspace()
        var options = EngineOptions()
        options.backgroundMaintenance = false
        options.beforeCommit = { [disk] () throws(LarderError) in try disk.check() }
        engine = try Engine.open(work.directory, options: options, time: work.time)
    }

    @Test func aWriteThatFailsIsAnErrorAndChangesNothing() throws {
        let cache = try work.cache()
        try cache.set(["a": 1, "b": 2])
        disk.fill()
        let failures: [LarderError.Code] = [.commitFailed, .writesSuspended, .io]
        let writes: [(Cache) throws -> Void] = [
            { try $0.set(10, forKey: "a") }, { try $0.set(["a": 10, "c": 3]) }, { try $0.remove("a") },
            { try $0.remove(["a", "b"]) },
            { cache in
                try cache.batch {
                    try $0.set(3, forKey: "c")
                    $0.remove("b")
                }
            }, { try $0.touch("a", policy: .never) },
        ]
        for write in writes {
            let error = #expect(throws: LarderError.self) { try write(cache) }
            #expect(error.map { failures.contains($0.code) } == true, "\(error.debugDescription)")
        }
        #expect(try cache.entries(of: Int.self).dictionary() == ["a": 1, "b": 2])
        disk.empty()
        // The larder recovers automatically.
        try cache.set(10, forKey: "a")
        #expect(try cache.entries(of: Int.self).dictionary() == ["a": 10, "b": 2])
        cache.close()
        engine.shutdown()
        #expect(try work.cache().entries(of: Int.self).dictionary() == ["a": 10, "b": 2])
    }

    @Test func readsContinueOnAFullDisk() throws {
        let cache = try work.cache()
        try cache.set(1, forKey: "a")
        let snapshot = try cache.snapshot()
        disk.fill()
        #expect(throws: LarderError.self) { try cache.set(2, forKey: "a") }
        #expect(try cache.value(Int.self, forKey: "a") == 1)
        #expect(try snapshot.value(Int.self, forKey: "a") == 1)
        #expect(try cache.count() == 1)
        disk.empty()
        try cache.set(2, forKey: "a")
        #expect(try cache.snapshot().value(Int.self, forKey: "a") == 2)
    }
}
