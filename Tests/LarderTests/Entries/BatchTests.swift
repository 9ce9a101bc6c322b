import Foundation
import Larder
import LarderPlatform
import LarderTestSupport
import Testing

@Suite struct BatchTests {
    let work: Workspace
    let cache: Cache

    init() throws {
        work = try Workspace()
        cache = try work.cache()
    }

    @Test func allChangesOfABatchAreApplied() throws {
        try cache.set(Reader("old"), forKey: "old")
        let result = try cache.batch { batch in
            try batch.set(Reader("new"), forKey: "new")
            try batch.setBytes([1, 2], forKey: "bytes", policy: .seconds(1))
            batch.remove("old")
            batch.remove("none")
            return batch.count
        }
        #expect(result == 4)
        #expect(try cache.keys() == ["bytes", "new"])
        #expect(try cache.bytes(forKey: "bytes") == [1, 2])
        work.time.advance(milliseconds: 1_000)
        #expect(try cache.keys() == ["new"])
    }

    @Test func aThrowingBatchChangesNothing() throws {
        struct Halt: Error {}
        try cache.set(1, forKey: "old")
        #expect(throws: Halt.self) {
            try cache.batch {
                try $0.set(2, forKey: "new")
                $0.remove("old")
                throw Halt()
            }
        }
        #expect(try cache.keys() == ["old"])
    }

    @Test func theLaterChangeOfAKeyWins() throws {
        try cache.batch {
            try $0.set(1, forKey: "a")
            try $0.set(2, forKey: "a")
            try $0.set(1, forKey: "b")
            $0.remove("b")
            $0.remove("c")
            try $0.set(3, forKey: "c")
        }
        #expect(try cache.entries(of: Int.self).dictionary() == ["a": 2, "c": 3])
        cache.close()
        #expect(try work.cache().entries(of: Int.self).dictionary() == ["a": 2, "c": 3])
    }

    @Test func aBatchCanBeAppliedAgainWithANewTimestamp() throws {
        let batch = CacheBatch()
        try batch.set(1, forKey: "k")
        #expect(batch.count == 1 && !batch.isEmpty && batch.byteCount == 3)
        work.time.advance(milliseconds: 500)
        try cache.apply(batch)
        #expect(try cache.info(forKey: "k")?.storedAtMilliseconds == 1_700_000_000_500)
        work.time.advance(milliseconds: 500)
        let other = try work.cache("other", policy: .never)
        try other.apply(batch, durability: .always)
        #expect(try other.info(forKey: "k")?.storedAtMilliseconds == 1_700_000_001_000)
        batch.removeAll()
        #expect(batch.count == 0 && batch.isEmpty && batch.byteCount == 0)
        try cache.apply(batch)
        try cache.apply(CacheBatch())
    }

    @Test func anEmptyBatchCreatesNoFiles() throws {
        let fresh = try work.cache("fresh", policy: nil)
        try fresh.batch { _ in }
        #expect(try Cache.databases(in: work.directory) == ["books"])
    }

    @Test func aBatchUsesTheCodecOfItsCache() throws {
        let lists = try work.cache { $0.codec = .propertyList }
        try lists.batch { try $0.set([1], forKey: "closure") }
        let batch = lists.makeBatch()
        try batch.set([1], forKey: "value")
        try lists.apply(batch)
        let json = CacheBatch(codec: .json)
        try json.set([1], forKey: "json")
        try lists.apply(json)
        #expect(
            try lists.entries(of: [Int].self).map { try $0.info().codec } == [.propertyList, .json, .propertyList])
        #expect(try lists.entries(of: [Int].self).values() == [[1], [1], [1]])
    }

    @Test func aRefusedChangeLeavesTheBatchUnchanged() throws {
        let batch = CacheBatch()
        try batch.set(1, forKey: "k")
        expectError(.encoding) { try batch.set(Double.nan, forKey: "k") }
        expectError(.invalidArgument) { try batch.set(1, forKey: String(repeating: "k", count: 65_537)) }
        expectError(.invalidArgument) { try batch.setBytes([1], forKey: "k", policy: .seconds(-1)) }
        #expect(batch.count == 1)
    }

    @Test func severalThreadsCanFillOneBatch() throws {
        let batch = CacheBatch()
        let errors = Recorder<String>()
        let threads = (0..<4).map { thread in
            WorkThread(name: "filler") {
                for index in 0..<250 {
                    do {
                        try batch.set(index, forKey: "\(thread)-\(index)")
                        if index % 10 == 0 { batch.remove("\(thread)-\(index)") }
                    } catch {
                        errors.add("\(error)")
                    }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(errors.all == [])
        #expect(batch.count == 1_100)
        #expect(try cache.count() == 0)
        try cache.apply(batch)
        #expect(try cache.count() == 900)
        #expect(try cache.values(Int.self, forKeys: ["3-249", "3-0"]) == ["3-249": 249])
    }

    @Test func readersNeverSeeAPartOfABatch() throws {
        // The writer changes both entries together. Meanwhile, both are read together, and must have equal values.
        let cache = cache
        try cache.set(["left": 0, "right": 0])
        let torn = Recorder<String>()
        let writer = WorkThread(name: "writer") {
            for round in 1...400 {
                do {
                    try cache.batch {
                        try $0.set(round, forKey: "left")
                        try $0.set(round, forKey: "right")
                    }
                } catch {
                    torn.add("\(error)")
                }
            }
        }
        var last = 0
        while last < 400, torn.isEmpty {
            let snapshot = try cache.snapshot()
            for reading in [cache, snapshot] as [any CacheReading] {
                let values = try reading.values(Int.self, forKeys: ["left", "right"], notFound: -1)
                if values[0] != values[1] { torn.add("\(values)") }
                if reading is Cache { last = values[0] }
            }
        }
        writer.join()
        #expect(torn.all == [])
    }
}
