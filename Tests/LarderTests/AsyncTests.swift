import Foundation
import Larder
import Testing
import Threading

@Suite struct AsyncTests {
    let work: Workspace

    init() throws { work = try Workspace() }

    @Test func theLongCallsHaveAsynchronousForms() async throws {
        let cache = try work.cache()
        try await cache.set(["a:1": 1, "a:2": 2, "b": 3])
        try await cache.set(1, forKey: "short", policy: .seconds(5))
        try await cache.set(1, forKey: "shorter", policy: .seconds(0.5))
        work.time.advance(milliseconds: 2_000)
        #expect(try await cache.sweep() == 1)
        work.time.advance(milliseconds: 3_000)
        #expect(try await cache.removeExpired().entries == 1)
        #expect(try await cache.remove(prefix: "a:").entries == 2)
        #expect(try await cache.removeAll(counting: true).entries == 1)
        try await cache.delete()
        let error = await #expect(throws: LarderError.self) { try await cache.removeAll() }
        #expect(error?.code == .deleted)
        _ = try work.cache("x")
        #expect(try await Cache.delete(named: "x", directory: work.directory))
        #expect(try await Cache.delete(named: "x", directory: work.directory) == false)
        _ = try work.cache("y")
        #expect(try await Cache.deleteAll(directory: work.directory) == ["y"])
    }

    @Test func manyAtOnceAllFinish() async throws {
        let cache = try work.cache()
        for group in 0..<40 {
            for index in 0..<5 { try await cache.set(index, forKey: "\(group):\(index)") }
        }
        let removed = try await withThrowingTaskGroup(of: Int.self) { tasks in
            for group in 0..<40 {
                tasks.addTask { try await cache.remove(prefix: "\(group):").entries ?? 0 }
            }
            return try await tasks.reduce(0, +)
        }
        #expect(removed == 200)
        #expect(try await cache.count() == 0)
    }
}
