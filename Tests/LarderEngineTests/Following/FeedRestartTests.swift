import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests that a feed of changes continues after a restart, and begins with a full pass (over all entries) if it cannot.
@Suite struct FeedRestartTests {
    /// Applies all changes of the larder to the copy.
    /// - Returns: the number of full passes that were needed.
    @discardableResult
    private func follow(_ copy: inout FeedCopy, _ larder: TestLarder) throws -> Int {
        let before = copy.passes
        let database = try larder.database(policy: .high)
        var steps = 0
        while try !copy.step(database, count: 7) {
            steps += 1
            try #require(steps < 1000, "a pass ends")
        }
        #expect(copy.fresh(database.now()) == (try database.contents()))
        return copy.passes - before
    }

    /// Returns a larder with some entries, and a complete copy of its database.
    private func followed(_ configure: (inout EngineOptions) -> Void = { _ in }) throws -> (TestLarder, FeedCopy) {
        let larder = try TestLarder {
            $0.machineStart = "one"
            configure(&$0)
        }
        let database = try larder.database(policy: .high)
        for key in ["a", "b", "c"] { try database.put(key, "1") }
        var copy = FeedCopy()
        #expect(try follow(&copy, larder) == 1)
        return (larder, copy)
    }

    @Test func followersContinueAfterARestartWithoutAFullPass() throws {
        let (larder, first) = try followed()
        var copy = first
        try larder.database().put("a", "2")
        try larder.database().remove("b")
        larder.close()
        #expect(try follow(&copy, larder) == 0)
        // Changes that are made after a restart, but before the follower's next read, are reported too.
        try larder.database().put("d", "3")
        larder.close()
        try larder.database().put("e", "4")
        try larder.database().purge(.tags([Array("t".utf8)], soft: false))
        #expect(try follow(&copy, larder) == 0)
        try larder.database().remove("c")
        _ = try larder.database().purge()
        try larder.database().put("f", "5")
        let killed = try larder.crashCopy()
        #expect(try follow(&copy, killed) == 0)
        #expect(copy.entries.count == 1)
        #expect(try killed.engine().statistics.feedFallbacks.read() == 0)
    }

    @Test(arguments: 0..<6) func aFollowersCopyEqualsTheDatabaseAfterKills(round: Int) throws {
        let seed = testSeed() &+ UInt64(round)
        var random = SeededGenerator(seed: seed)
        var larder = try TestLarder {
            $0.changeLogBytes = [1 << 20, 5000][round % 2]
            $0.checkpointBytes = [1 << 20, 300][round / 2 % 2]
            $0.journalSegmentBytes = 2000
        }
        // Keeps the killed larders alive, because the directory of each contains that of the next.
        var previous: [TestLarder] = []
        var copies = [FeedCopy(), FeedCopy()]
        copies[1].prefix = Array("a".utf8)
        var kills = 0
        for number in 0..<500 {
            try FeedHistory.act(larder, &random, number)
            for index in copies.indices where random.oneIn(4) {
                _ = try copies[index].step(
                    try larder.database(policy: .high), count: 1 + random.below(6), bytes: 1 + random.below(100))
            }
            if random.oneIn(15) {
                let next = try larder.crashCopy()
                previous.append(larder)
                larder = next
                kills += 1
            }
            guard number % 50 == 49 else { continue }
            let database = try larder.database(policy: .high)
            for index in copies.indices {
                while try !copies[index].step(database, count: 7) {}
                let expected = try database.contents().filter { $0.key.utf8.starts(with: copies[index].prefix) }
                #expect(
                    copies[index].fresh(database.now()) == expected, "seed \(seed), number \(number), copy \(index)")
            }
        }
        // A feed starts with a full pass after its database was deleted or exchanged, or if its position was forgotten.
        // A kill alone does not cause one.
        if round % 2 == 0 { #expect(copies[0].passes < kills, "\(copies[0].passes) passes, \(kills) kills") }
    }

    @Test func followersNeedAFullPassAfterAMachineFailure() throws {
        let (larder, first) = try followed()
        var copy = first
        try larder.database().put("a", "2")
        let failed = try larder.crashCopy { $0.machineStart = "two" }
        var other = copy
        #expect(try follow(&other, failed) == 1)
        #expect(failed.events.contains("the machine was restarted"))
        // The larder was shut down before the machine restarted, so no change can be lost.
        larder.close { $0.machineStart = "two" }
        #expect(try follow(&copy, larder) == 0)
        // If the time of the machine's start is unknown, a failure is assumed, and a full pass is needed.
        let unknown = try larder.crashCopy { $0.machineStart = nil }
        #expect(try follow(&copy, unknown) == 1)
    }

    /// The source loses the end of its journal, with a change that it had already reported to a follower.
    @Test func aFollowerDetectsLostChanges() throws {
        let (larder, first) = try followed()
        var copy = first
        let database = try larder.database()
        try database.put("a", "2")
        #expect(try follow(&copy, larder) == 0)
        var ahead = copy
        try database.put("b", "lost")
        #expect(try follow(&ahead, larder) == 0)
        let sequence = try larder.engine().pipeline.lastDecided
        let cut = try larder.crashCopy()
        let segment = try #require(cut.journalSegments.last)
        try FileSystem.truncate(segment, to: FileSystem.size(segment) - 1)
        try cut.database().put("b", "other")
        #expect(try cut.engine().pipeline.lastDecided > sequence, "no sequence is used twice")
        #expect(try follow(&ahead, cut) == 1)
        #expect(try follow(&copy, cut) == 0, "a follower without the lost change needs no full pass")
        #expect(ahead.entries == copy.entries)
        #expect(try cut.database().value("b") == "other")
    }

    @Test func aPositionInTheFutureRequiresAFullPass() throws {
        let (larder, first) = try followed()
        let (feed, place) = try #require(larder.engine().changeLog.end(of: larder.database()))
        for later in [ChangePlace(place.sequence, place.step + 1), ChangePlace(.max, .max)] {
            var copy = first
            copy.position = FeedPosition(feed: feed, later)
            #expect(try follow(&copy, larder) == 1)
        }
        larder.close()
        // After the restart, a new feed continues the previous one. A position after the end of the previous feed
        // requires a full pass too.
        var copy = first
        copy.position = FeedPosition(feed: feed, ChangePlace(place.sequence, place.step + 1))
        #expect(try follow(&copy, larder) == 1)
        copy.position = FeedPosition(feed: feed, place, .through(Array("a".utf8)))
        #expect(try follow(&copy, larder) == 0, "an interrupted pass resumes")
    }

    @Test func aFollowerOfACopiedLarderNeedsAFullPass() throws {
        let (larder, first) = try followed()
        var copy = first
        larder.close()
        let fork = try larder.crashCopy()
        try larder.database().put("a", "here")
        #expect(try follow(&copy, larder) == 0)
        for number in 0..<10 { try fork.database().put("k\(number)", "there") }
        #expect(try follow(&copy, fork) == 1)
        // Following the original larder again needs a full pass too.
        #expect(try follow(&copy, larder) == 1)
    }

    @Test func changesMadeWithoutAChangeLogRequireAFullPass() throws {
        let (larder, first) = try followed()
        var copy = first
        larder.close()
        let (files, aside) = (larder.path + "/CHANGES", larder.parent + "/aside")
        try FileSystem.rename(files, to: aside)
        try larder.database().remove("a")
        larder.close()
        try FileSystem.rename(aside, to: files)
        #expect(try follow(&copy, larder) == 1)
        #expect(larder.events.contains("without a change log"))
    }

    @Test func damagedChangeLogFilesAreIgnored() throws {
        let (larder, copy) = try followed()
        for number in 0..<20 { try larder.database().put("k\(number)", "v") }
        let whole = try larder.crashCopy()
        let file = try #require(try FileSystem.list(whole.path + "/CHANGES").last)
        let size = FileSystem.size(whole.path + "/CHANGES/" + file)
        var passes: Set<Int> = []
        for offset in stride(from: 0, to: size, by: 37) {
            let damaged = try whole.crashCopy()
            let path = damaged.path + "/CHANGES/" + file
            var bytes = try #require(try FileSystem.read(path))
            bytes[offset] ^= 0x10
            try FileSystem.writeFile(path, bytes)
            var other = copy
            // A damaged end of the file looks like an incomplete write of a killed process. Then there is no full pass,
            // and changes at the end may be missing from the copy.
            let database = try damaged.database(policy: .high)
            while try !other.step(database) {}
            passes.insert(other.passes - copy.passes)
            #expect(other.entries["k0".utf8.map { $0 }] != nil || offset > 0)
        }
        #expect(passes.contains(1))
    }

    @Test func aChangeLogThatCannotBeWrittenIsAbandoned() throws {
        let isFull = Guarded(false)
        let (larder, first) = try followed {
            $0.journalFaults = JournalFaults { call, path in
                guard case .write = call, path.contains("/CHANGES/"), isFull.value else { return nil }
                return .fail(ENOSPC)
            }
        }
        var copy = first
        isFull.value = true
        for number in 0..<10 { try larder.database().put("k\(number)", "v") }
        #expect(try follow(&copy, larder) == 0, "writers and followers are not affected")
        #expect(larder.events.all.filter { $0.level == .warning }.count == 1)
        let killed = try larder.crashCopy()
        var other = copy
        #expect(try follow(&other, killed) == 1)
        isFull.value = false
        larder.time.advance(milliseconds: 1000)
        try larder.database().put("a", "3")
        let later = try larder.crashCopy()
        #expect(try follow(&other, later) == 1, "the position belongs to another larder")
        #expect(try follow(&copy, later) == 0, "the copy had all changes that the files lack")
    }

    @Test func aFailedCommitRestartsTheChangeLog() throws {
        let fails = Guarded(false)
        let (larder, first) = try followed {
            $0.beforeCommit = { () throws(LarderError) in
                if fails.value { throw LarderError(.io, "no", operation: "test") }
            }
        }
        var copy = first
        fails.value = true
        #expect(errorCode { try larder.database().put("a", "refused") } == .commitFailed)
        fails.value = false
        try larder.database().put("b", "2")
        #expect(try follow(&copy, larder) == 0)
        try larder.database().put("c", "3")
        let killed = try larder.crashCopy()
        #expect(try follow(&copy, killed) == 0)
    }

    @Test func aDatabaseKilledDuringAChangeNeedsAFullPass() throws {
        let (larder, first) = try followed()
        var copy = first
        try larder.engine().context.changeLog.changing()
        let killed = try larder.crashCopy()
        #expect(try follow(&copy, killed) == 1)
        #expect(killed.events.contains("while a database was changing"))
    }

    @Test func aRecreatedDatabaseNeedsAFullPass() throws {
        let (larder, first) = try followed()
        var copy = first
        _ = try larder.engine().deleteDatabase("books")
        try larder.database(policy: .high).put("z", "1")
        #expect(try follow(&copy, larder) == 1)
        _ = try larder.engine().deleteDatabase("books")
        larder.close()
        try larder.database(policy: .high).put("y", "1")
        #expect(try follow(&copy, larder) == 1)
        #expect(copy.entries.count == 1)
    }

    @Test func changeLogFilesStayWithinTheirLimit() throws {
        let (larder, first) = try followed { $0.changeLogBytes = 200_000 }
        var copy = first
        let database = try larder.database()
        for number in 0..<20_000 { try database.put("k\(number % 50)", "\(number)") }
        let figures = try larder.engine().changeLog.figures
        #expect(figures.fileBytes <= 100_000 + 4096 && figures.fileBytes > 50_000, "\(figures)")
        #expect(figures.changes == 50 && figures.oldest ?? 0 < figures.newest ?? 0)
        // The change log in memory still has all changes.
        #expect(try follow(&copy, larder) == 0)
        let old = copy
        for number in 0..<20_000 { try database.put("k\(number % 50)", "\(number)") }
        let killed = try larder.crashCopy()
        copy = old
        #expect(try follow(&copy, killed) == 1, "the files do not have changes that old")
        try killed.database().put("k", "v")
        let again = try killed.crashCopy()
        #expect(try follow(&copy, again) == 0)
    }

    @Test func aChangeLogThatIsNotReadForAWeekIsDiscarded() throws {
        let (larder, first) = try followed()
        var copy = first
        larder.time.advance(milliseconds: 6 * 86_400_000)
        try larder.database().put("a", "2")
        #expect(try follow(&copy, larder) == 0)
        larder.time.advance(milliseconds: 6 * 86_400_000)
        try larder.database().put("a", "3")
        #expect(try follow(&copy, larder) == 0)
        larder.time.advance(milliseconds: 8 * 86_400_000)
        try larder.database().put("a", "4")
        #expect(try larder.engine().changeLog.figures.databases == 0)
        #expect(try follow(&copy, larder) == 1)
        larder.close()
        larder.time.advance(milliseconds: 8 * 86_400_000)
        #expect(try larder.engine().changeLog.figures.databases == 0)
        #expect(try follow(&copy, larder) == 1)
    }
}

/// Tests of the encoding of change records in files.
@Suite struct ChangeRecordTests {
    @Test func everyChangeRecordIsReadBackAsWritten() throws {
        let version = ChangeVersion(time: 1_700_000_000_000, sequence: 1 << 62)
        var state = FeedState(feed: .max, last: ChangePlace(5, 6), purge: version, readAt: 7)
        state.previousFeeds = [
            PreviousFeed(feed: 8, end: ChangePlace(9, 10)), PreviousFeed(feed: 11, end: ChangePlace(0)),
        ]
        let records: [ChangeRecord] = [
            .start(reserved: 1 << 62, machine: Array("m".utf8)), .database(3, name: Array("books".utf8), state),
            .key(3, key: [], sequence: 12, version), .key(.max, key: [0, 255], sequence: .max, version),
            .purge(3, version), .purgeTags(3, [[], [1, 2]], version), .foreignPurge(3, version), .anew(3, feed: 9),
            .deleted(3), .read(3, at: -1), .reserved(13), .changing, .changed, .closed,
        ]
        var writer = ChangeRecordWriter()
        for record in records { writer.add(record) }
        let bytes = writer.bytes
        var reader = ChangeRecordReader(bytes, from: 0, to: bytes.count)
        for record in records { #expect(try reader.next() == record) }
        #expect(try reader.next() == nil)
        // Truncated or damaged records are never read beyond their end.
        var random = SeededGenerator(seed: testSeed())
        for length in 0..<bytes.count {
            var damaged = bytes
            damaged[random.below(bytes.count)] ^= UInt8(1 + random.below(255))
            for bytes in [Array(bytes[..<length]), damaged] {
                var reader = ChangeRecordReader(bytes, from: 0, to: bytes.count)
                var count = 0
                do { while try reader.next() != nil { count += 1 } } catch {}
                #expect(count <= bytes.count)
            }
        }
    }
}
