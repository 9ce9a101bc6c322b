import LarderLevelDB
import LarderPlatform
import LarderTestSupport
import Synchronization
import Testing

/// Tests of guarantees for any number of threads that use one database:
/// - a call that runs while another thread closes the database either succeeds or throws `.closed`;
/// - close either closes or throws `.busy`, and never leaves a snapshot or cursor of a closed database;
/// - no reader sees a part of a batch.
@Suite struct ConcurrencyTests {
    let workspace: Workspace

    init() throws { workspace = try Workspace(Options(writeBufferBytes: 64 << 10)) }

    @Test func readsDuringACloseReturnValuesOrThrowClosed() throws {
        for _ in 0..<10 {
            let database = workspace.database
            for number in 0..<100 { try database.put(key(number), key(number)) }
            let reads = Atomic<Int>(0)
            let wrong = Atomic<Int>(0)
            // Keeps the database alive until all threads have ended.
            withExtendedLifetime(database) {
                onThreads(9) { thread in
                    if thread == 0 {
                        while reads.load(ordering: .relaxed) < 500 { sched_yield() }
                        if failure({ () throws(LevelDBError) in try database.close() }) != nil {
                            wrong.wrappingAdd(1, ordering: .relaxed)
                        }
                        return
                    }
                    var number = thread
                    while true {
                        number = (number + 7) % 100
                        do throws(LevelDBError) {
                            if try database.get(key(number)) != key(number) { wrong.wrappingAdd(1, ordering: .relaxed) }
                            reads.wrappingAdd(1, ordering: .relaxed)
                        } catch {
                            if error.code != .closed { wrong.wrappingAdd(1, ordering: .relaxed) }
                            return
                        }
                    }
                }
            }
            #expect(wrong.load(ordering: .relaxed) == 0)
            #expect(database.isClosed)
            try workspace.reopen()
        }
    }

    @Test func snapshotsAndCursorsCanBeCreatedDuringAClose() throws {
        for _ in 0..<10 {
            let database = workspace.database
            try database.put(bytes("a"), bytes("1"))
            let wrong = Atomic<Int>(0)
            onThreads(6) { thread in
                if thread < 2 {
                    // Close is refused while there are snapshots or cursors. The other threads create a limited number
                    // of them, so this loop ends.
                    while let error = failure({ () throws(LevelDBError) in try database.close() }) {
                        if error.code != .busy { wrong.wrappingAdd(1, ordering: .relaxed) }
                        sched_yield()
                    }
                    return
                }
                let error = failure { () throws(LevelDBError) in
                    for _ in 0..<100 {
                        let snapshot = try database.snapshot()
                        let cursor = try database.cursor(ReadOptions(snapshot: snapshot))
                        try cursor.seekToFirst()
                        if cursor.value != bytes("1") { wrong.wrappingAdd(1, ordering: .relaxed) }
                        snapshot.close()
                    }
                }
                if let error, error.code != .closed { wrong.wrappingAdd(1, ordering: .relaxed) }
            }
            #expect(wrong.load(ordering: .relaxed) == 0)
            #expect(database.isClosed)
            try workspace.reopen()
        }
    }

    @Test func readsOfAClosingSnapshotReturnValuesOrThrowClosed() throws {
        let database = workspace.database
        try database.put(bytes("a"), bytes("1"))
        for _ in 0..<50 {
            let snapshot = try database.snapshot()
            let reads = Atomic<Int>(0)
            let wrong = Atomic<Int>(0)
            onThreads(4) { thread in
                if thread == 0 {
                    while reads.load(ordering: .relaxed) < 50 { sched_yield() }
                    snapshot.close()
                    return
                }
                while true {
                    do throws(LevelDBError) {
                        let value = try database.get(bytes("a"), options: ReadOptions(snapshot: snapshot))
                        if value != bytes("1") { wrong.wrappingAdd(1, ordering: .relaxed) }
                        reads.wrappingAdd(1, ordering: .relaxed)
                    } catch {
                        if error.code != .closed { wrong.wrappingAdd(1, ordering: .relaxed) }
                        return
                    }
                }
            }
            #expect(wrong.load(ordering: .relaxed) == 0)
        }
        try database.close()
    }

    @Test func concurrentWritesAreAllStored() throws {
        let database = workspace.database
        let wrong = Atomic<Int>(0)
        onThreads(4) { thread in
            do throws(LevelDBError) {
                for number in 0..<500 {
                    try database.put(key(thread * 1000 + number), [UInt8](repeating: UInt8(thread), count: 200))
                }
            } catch {
                wrong.wrappingAdd(1, ordering: .relaxed)
            }
        }
        #expect(wrong.load(ordering: .relaxed) == 0)
        let cursor = try database.cursor()
        try cursor.seekToFirst()
        #expect(try keys(cursor) == (0..<4).flatMap { thread in (0..<500).map { key(thread * 1000 + $0) } })
    }

    @Test func readersNeverSeeAPartOfABatch() throws {
        let database = workspace.database
        let done = Atomic<Bool>(false)
        let wrong = Atomic<Int>(0)
        onThreads(3) { thread in
            do throws(LevelDBError) {
                if thread == 0 {
                    defer { done.store(true, ordering: .relaxed) }
                    for round in 0..<500 {
                        let batch = WriteBatch()
                        for number in 0..<20 { batch.put(key(number), bytes("\(round)")) }
                        try database.write(batch)
                    }
                    return
                }
                while !done.load(ordering: .relaxed) {
                    let cursor = try database.cursor()
                    try cursor.seekToFirst()
                    var values: [[UInt8]] = []
                    while cursor.isValid {
                        values.append(cursor.value)
                        try cursor.next()
                    }
                    if !values.isEmpty, values.count != 20 || Set(values).count != 1 {
                        wrong.wrappingAdd(1, ordering: .relaxed)
                    }
                }
            } catch {
                wrong.wrappingAdd(1, ordering: .relaxed)
            }
        }
        #expect(wrong.load(ordering: .relaxed) == 0)
    }

    @Test("compactions, reads and a close can run concurrently") func compactionsReadsAndACloseMeet() throws {
        let database = workspace.database
        for number in 0..<2000 { try database.put(key(number), [UInt8](repeating: 1, count: 200)) }
        let started = Atomic<Bool>(false)
        let wrong = Atomic<Int>(0)
        onThreads(3) { thread in
            do throws(LevelDBError) {
                switch thread {
                case 0:
                    started.store(true, ordering: .relaxed)
                    while true { try database.compact() }
                case 1:
                    while !started.load(ordering: .relaxed) { sched_yield() }
                    try database.close()
                default:
                    while true {
                        if try database.get(key(1999)) == nil { wrong.wrappingAdd(1, ordering: .relaxed) }
                    }
                }
            } catch {
                if error.code != .closed { wrong.wrappingAdd(1, ordering: .relaxed) }
            }
        }
        #expect(wrong.load(ordering: .relaxed) == 0)
        #expect(database.isClosed)
    }
}
