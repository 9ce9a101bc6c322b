import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of the larder's time when the clock is set: each statement in the section Time of
/// docs/Architecture.md.
@Suite struct TimeTests {
    /// When the clock is set.
    enum Moment: CaseIterable { case running, cleanRestart, kill, powerLoss }

    private static let steps: [Int64] = [
        2, 50, 1000, 30_000, 61_000, 3_600_000, 86_400_000, 8 * 86_400_000, 315_360_000_000,
    ].flatMap { [$0, -$0] }
    /// Times in 1970 and in 2106, in milliseconds.
    private static let instants: [Int64] = [0, 4_294_967_296_000]
    private static let start: Int64 = 1_700_000_000_000
    private static let life: Int64 = 60_000

    private static var cells: [(Moment, Int64)] {
        Moment.allCases.flatMap { moment in
            (steps + instants.map { $0 - start - 110 }).map { (moment, $0) }
        }
    }

    /// Returns a larder with an entry of each kind, and one entry that a read has seen as expired.
    private func larder() throws -> TestLarder {
        let larder = try TestLarder()
        let governed = try larder.database("governed", policy: .high)
        let forever = try larder.database("forever", policy: .never)
        try governed.put("gone", "1", rule: .own(governed.now() + 100))
        larder.time.advance(milliseconds: 100)
        try governed.put("fresh", "1")
        try forever.put("px", "1", rule: .own(forever.now() + Self.life))
        try forever.put("kept", "1")
        #expect(try governed.value("gone") == nil)
        return larder
    }

    /// Returns the larder after the clock was changed by `step` milliseconds at `moment`.
    private func set(_ larder: TestLarder, _ moment: Moment, _ step: Int64) throws -> TestLarder {
        switch moment {
        case .running:
            larder.time.stepWall(milliseconds: step)
            return larder
        case .cleanRestart:
            larder.close()
            larder.time.stepWall(milliseconds: step)
            return larder
        case .kill:
            _ = try larder.engine().maintain()
            let crashCopy = try larder.crashCopy()
            crashCopy.time.stepWall(milliseconds: step)
            return crashCopy
        case .powerLoss:
            // The file TIME records the larder's time in marks. A power failure loses the marks of the last second.
            _ = try larder.engine().maintain()
            let synced = try Files.read(larder.path + "/TIME")
            larder.time.advance(milliseconds: 10)
            _ = try larder.engine().database("forever").value("px")
            _ = try larder.engine().maintain()
            let crashCopy = try larder.crashCopy()
            try Files.write(crashCopy.path + "/TIME", synced)
            crashCopy.time.stepWall(milliseconds: step)
            return crashCopy
        }
    }

    @Test(arguments: cells) func aClockStepBetweenRunsNeverMovesTimeBack(_ moment: Moment, _ step: Int64) throws {
        let before = try larder()
        if moment != .powerLoss { before.time.advance(milliseconds: 10) }
        let reached = try before.engine().now()
        let larder = try set(before, moment, step)
        let tolerance: Int64 = moment == .powerLoss ? 10 : 0
        let governed = try larder.database("governed")
        let forever = try larder.database("forever")
        let now = try larder.engine().now()
        // The larder's time never goes back, and goes forward no further than the clock.
        let passed = now - (moment == .powerLoss ? reached + 10 : reached)
        #expect((max(0, step) - tolerance...max(0, step)).contains(passed))
        #expect(now == max(larder.time.wallMilliseconds(), now))
        let offset = try larder.engine().clockOffsetMilliseconds
        #expect(offset == (now - larder.time.wallMilliseconds() > 1 ? now - larder.time.wallMilliseconds() : 0))
        // No entry revives; fresh entries stay fresh unless the clock reaches their deadlines.
        #expect(try governed.value("gone") == nil)
        let isFresh = passed < Self.life - 10
        #expect(try governed.value("fresh") == (isFresh ? "1" : nil))
        #expect(try forever.contents() == (isFresh ? ["px": "1", "kept": "1"] : ["kept": "1"]))
        try checkNew(larder)
        // The step is logged if it is large enough to matter.
        _ = try larder.engine().maintain()
        let isSaid = larder.events.contains("the clock")
        if step <= -1010 { #expect(isSaid) }
        if abs(step) < 900 { #expect(!larder.events.all.contains { $0.level >= .warning }) }
        // Entries that were written while the clock was wrong still exist after the clock was corrected and the process
        // was killed.
        larder.time.stepWall(milliseconds: -step)
        _ = try larder.engine().maintain()
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database("forever").value("after") == "1")
        #expect(try crashCopy.database("forever").contents().keys.contains("after"))
        try checkNew(crashCopy)
    }

    /// Checks that new entries are visible to every kind of read, and live as long as requested.
    private func checkNew(_ larder: TestLarder) throws {
        let forever = try larder.database("forever")
        let now = forever.now()
        try forever.put("after", "1")
        try forever.put("short", "1", rule: .own(now + 500))
        #expect(try forever.contents().keys.contains("after"))
        #expect(try forever.commit([Key("after")], loading: .records) { $0.current(0)?.text } == "1")
        larder.time.advance(milliseconds: 499)
        #expect(try forever.value("short") == "1")
        larder.time.advance(milliseconds: 1)
        #expect(try forever.value("short") == nil)
        #expect(try forever.value("after") == "1")
    }

    /// Regression test: after SIGKILL and a clock that was set back by 20 to 61 s, entries that had been seen as
    /// expired were fresh again. After a change of policy, one of them stayed fresh permanently.
    @Test(arguments: [20_000, 45_000, 61_000] as [Int64])
    func expiredEntriesStayExpiredAfterTheClockWasSetBack(_ step: Int64) throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .highest)
        try database.put("governed", "1")
        try database.put("own", "1", rule: .own(database.now() + 10_000))
        larder.time.advance(milliseconds: 10_000)
        #expect(try database.contents() == [:])
        try database.setPolicy(.low)
        try database.put("new", "1")
        _ = try larder.engine().maintain()
        let crashCopy = try larder.crashCopy()
        crashCopy.time.stepWall(milliseconds: -step)
        let again = try crashCopy.database()
        #expect(try again.contents() == ["new": "1"])
        try again.setPolicy(.never)
        #expect(try again.contents() == ["new": "1"])
        #expect(!crashCopy.events.contains("are expired"))
    }

    /// No mark is written to TIME while the time is not read. The first read after that writes a mark before it
    /// returns.
    @Test("after a kill while idle, the time is at most 250 ms behind", arguments: [251, 1000, 10_000] as [Int64])
    func timeAfterAKillWhileIdle(_ idle: Int64) throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .never)
        try database.put("gone", "1", rule: .own(database.now() + idle))
        _ = try larder.engine().maintain()
        larder.time.advance(milliseconds: idle)
        #expect(try database.value("gone") == nil)
        let reached = try larder.engine().now()
        let crashCopy = try larder.crashCopy()
        crashCopy.time.stepWall(milliseconds: -3_600_000)
        #expect(try crashCopy.database().value("gone") == nil)
        #expect(try crashCopy.engine().now() >= reached - 250)
    }

    /// The time for which the machine is off counts towards deadlines, even if the clock had been set back before.
    @Test func timeWhileTheMachineIsOffCountsTowardsDeadlines() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .never)
        larder.time.stepWall(milliseconds: 3_600_000)
        _ = database.now()
        larder.time.stepWall(milliseconds: -3_600_000)
        try database.put("a", "1", rule: .own(database.now() + 100_000))
        larder.close()
        larder.time.advance(milliseconds: 60_000)
        let wall = larder.time.wallMilliseconds()
        #expect(try larder.engine().now() == wall + 3_600_000)
        larder.close()
        larder.time.advance(milliseconds: 39_999)
        #expect(try larder.database().value("a") == "1")
        larder.close()
        larder.time.advance(milliseconds: 1)
        #expect(try larder.database().value("a") == nil)
    }

    /// A machine without a hardware clock starts in 1970, and its clock is corrected before the larder is reopened.
    /// Entries must not expire as if decades had passed.
    @Test func aClockThatStartsIn1970DoesNotExpireEntries() throws {
        let larder = try TestLarder()
        try larder.database(policy: .high).put("a", "1")
        larder.close()
        let right = larder.time.wallMilliseconds()
        larder.time.stepWall(milliseconds: -right)
        #expect(try larder.database().value("a") == "1")
        larder.time.advance(milliseconds: 5000)
        #expect(try larder.engine().now() == right + 5000)
        larder.close()
        larder.time.stepWall(milliseconds: right - 5000)
        #expect(try larder.engine().now() == right + 5000)
        #expect(try larder.database().value("a") == "1")
        #expect(try larder.engine().clockOffsetMilliseconds == 5000)
    }

    /// If the newest mark in TIME was only partly written, the previous mark is used. An invalid mark is reported and
    /// does no harm.
    @Test func afterATornWriteThePreviousTimeMarkIsUsed() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .high)
        try database.put("a", "1")
        for _ in 0..<3 {
            larder.time.advance(milliseconds: 100)
            _ = database.now()
            _ = try larder.engine().maintain()
        }
        let now = database.now()
        let path = larder.path + "/TIME"
        for (offsets, isWhole) in [([0], false), ([TimeKeeper.secondOffset], false), ([], true)] {
            let crashCopy = try larder.crashCopy()
            for offset in offsets { try Files.flip(crashCopy.path + "/TIME", at: offset + 20) }
            crashCopy.time.stepWall(milliseconds: -5000)
            let reached = try crashCopy.engine().now()
            #expect((now - (isWhole ? 0 : 100)...now).contains(reached))
            #expect(!crashCopy.events.contains("TIME is damaged"))
        }
        for bytes in [[], [1, 2, 3], Array(try Files.read(path).map { ~$0 })] as [[UInt8]] {
            let crashCopy = try larder.crashCopy()
            try Files.write(crashCopy.path + "/TIME", bytes)
            crashCopy.time.stepWall(milliseconds: -5000)
            #expect(try crashCopy.database().contents() == ["a": "1"])
            #expect(crashCopy.events.contains("TIME is damaged"))
        }
    }

    @Test func aTimeFileOfANewerVersionIsRefused() throws {
        let larder = try TestLarder()
        _ = try larder.engine()
        larder.close()
        var bytes = TimeMark(number: 1, time: 1, wall: 1).bytes
        bytes[11] = 2
        let sum = CRC32C.checksum(bytes[0..<12])
        for index in 0..<4 { bytes[12 + index] = UInt8(truncatingIfNeeded: sum >> (24 - 8 * UInt32(index))) }
        try Files.write(larder.path + "/TIME", bytes)
        #expect(errorCode { _ = try larder.engine() } == .newerFormat)
    }

    /// While the time is not read, no mark is written, not even by background threads.
    @Test func anIdleLarderDoesNotWriteTheTimeFile() throws {
        let larder = try TestLarder()
        try larder.database(policy: .high).put("a", "1")
        try larder.maintain()
        let written = try Files.read(larder.path + "/TIME")
        for _ in 0..<10 {
            larder.time.advance(milliseconds: 7000)
            try larder.maintain()
        }
        #expect(try Files.read(larder.path + "/TIME") == written)
        #expect(try larder.database().value("a") == nil)
        _ = try larder.engine().maintain()
        #expect(try Files.read(larder.path + "/TIME") != written)
    }
}
