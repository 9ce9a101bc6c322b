import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of the window of near deadlines, with a model of the entries that scans find.
@Suite struct DeadlineWindowTests {
    private final class Shelf: DatabaseIdentity {
        let name = "shelf"
    }

    private static let entry = DeadlineWindow.entryBytes + 2

    private let database = Shelf()

    private func name(_ number: Int) -> EntryName { EntryName(database, [UInt8(number >> 8), UInt8(number & 255)]) }

    /// Runs a whole scan over the entries in `stored`.
    private func scan(_ window: inout DeadlineWindow, now: Int64, _ stored: [Int: Int64]) -> [Int64] {
        var reported: [Int64] = []
        guard let range = window.beginScan(now: now) else { return [] }
        window.beginSlice()
        for (number, deadline) in stored where range.contains(deadline) {
            if window.take(name(number), deadline, mayRepeat: false) { reported.append(deadline) }
        }
        window.endSlice()
        window.endScan()
        return reported
    }

    @Test func onlyDeadlinesBeforeTheHorizonAreKept() {
        var window = DeadlineWindow(from: 1000, spanMax: 60_000, bytesMax: 1 << 20)
        #expect(window.set(name(1), 1001) == nil)
        #expect(window.count == 0)
        #expect(window.beginScan(now: 1000) == 1000..<61_000)
        window.endScan()
        _ = window.set(name(1), 60_999)
        _ = window.set(name(2), 61_000)
        #expect(window.count == 1 && window.deadline(name(1)) == 60_999)
        // An entry whose lifetime is extended beyond the horizon is forgotten.
        #expect(window.set(name(1), 70_000) == 60_999)
        #expect(window.count == 0 && window.horizon == 61_000)
        // The next scan begins when half of the window has passed.
        #expect(window.beginScan(now: 31_000) == nil)
        #expect(window.beginScan(now: 31_001) == 61_000..<121_000)
    }

    @Test func theHorizonMovesToAnEarlierTimeInsteadOfUsingMoreMemory() {
        var window = DeadlineWindow(from: 0, spanMax: .max, bytesMax: 100 * Self.entry)
        #expect(window.beginScan(now: 0) == 0..<(.max))
        window.endScan()
        for number in 0..<1000 { _ = window.set(name(number), Int64(10_000 - number)) }
        #expect(window.count <= 100 && window.count >= 49)
        #expect(window.horizon < 10_000)
        // The nearest deadlines are those that were added last.
        for number in 960..<1000 { #expect(window.deadline(name(number)) != nil) }
        // The window is refilled when few are left.
        #expect(window.beginScan(now: 0) == nil)
        while window.count > 24 {
            let nearest = window.nearest ?? 0
            #expect(window.popDue(now: nearest) != nil)
        }
        #expect(window.beginScan(now: 0)?.upperBound == .max)
    }

    @Test func moreEqualDeadlinesThanFitAreReportedWithoutBeingKept() {
        var window = DeadlineWindow(from: 0, spanMax: 60_000, bytesMax: 100 * Self.entry)
        var stored: [Int: Int64] = [:]
        for number in 0..<1000 { stored[number] = 5000 }
        stored[1000] = 4000
        #expect(scan(&window, now: 0, stored) == [])
        #expect(window.count == 1 && window.horizon == 5000)
        // Another scan would not find what fits: wait for the horizon.
        #expect(window.beginScan(now: 0) == nil)
        #expect(window.beginScan(now: 4999) == nil)
        #expect(window.popDue(now: 4999) == name(1000))
        #expect(window.reportedUntil(now: 4999) == 5000)
        #expect(window.reportedUntil(now: 5100) == 5000)
        stored[1001] = 5050
        #expect(scan(&window, now: 5000, stored).count == 1000)
        #expect(window.count == 1 && window.horizon > 5050)
        #expect(window.popDue(now: 5050) == name(1001))
        #expect(window.reportedUntil(now: 5100) == 5101)
    }

    @Test func changesDuringASliceReplaceWhatTheSliceHasRead() {
        let other = Shelf()
        var window = DeadlineWindow(from: 0, spanMax: 60_000, bytesMax: 1 << 20)
        #expect(window.beginScan(now: 100) != nil)
        window.beginSlice()
        _ = window.set(name(1), nil)
        _ = window.set(name(2), 7000)
        window.removeAll(of: other)
        #expect(window.take(name(1), 50, mayRepeat: false) == false)
        #expect(window.take(name(2), 50, mayRepeat: false) == false)
        #expect(window.take(name(3), 50, mayRepeat: false) == true)
        #expect(window.take(EntryName(other, [3]), 50, mayRepeat: false) == false)
        #expect(window.deadline(name(1)) == nil && window.deadline(name(2)) == 7000)
        window.endSlice()
        window.beginSlice()
        #expect(window.take(EntryName(other, [3]), 50, mayRepeat: false) == true)
        window.endSlice()
    }

    @Test func aScanDoesNotReportAnEntryTwice() {
        var window = DeadlineWindow(from: 0, spanMax: 60_000, bytesMax: 1 << 20)
        #expect(window.beginScan(now: 100) != nil)
        // Known from a change, due, and then found by the scan.
        _ = window.set(name(1), 200)
        #expect(window.popDue(now: 200) == name(1))
        #expect(window.reportedUntil(now: 200) == 0)
        window.beginSlice()
        #expect(window.take(name(1), 200, mayRepeat: false) == false)
        // Found in memory, and again in LevelDB.
        #expect(window.take(name(2), 50, mayRepeat: true) == true)
        #expect(window.take(name(2), 50, mayRepeat: false) == false)
        #expect(window.take(name(3), 250, mayRepeat: true) == false)
        #expect(window.popDue(now: 250) == name(3))
        #expect(window.take(name(3), 250, mayRepeat: false) == false)
        window.endSlice()
        window.endScan()
        #expect(window.popDue(now: 60_000) == nil)
        #expect(window.count == 0)
    }

    /// Random changes concurrent with scans: every expiry is reported exactly once, in time, within the memory.
    @Test(arguments: [Int64(60_000), .max]) func everyExpiryIsReportedOnce(spanMax: Int64) {
        var random = SeededGenerator(seed: testSeed())
        var window = DeadlineWindow(from: 1, spanMax: spanMax, bytesMax: 40 * Self.entry)
        var now: Int64 = 0
        var stored: [Int: Int64] = [:]
        var reported: Set<Int> = []
        /// The entries that the running scan has not read yet, in the order of reading.
        var unread: [Int]?
        var range: Range<Int64> = 0..<0
        func report(_ number: Int) {
            #expect(stored[number] ?? .max <= now)
            #expect(reported.insert(number).inserted == true)
        }
        func change(_ number: Int) {
            let life = random.oneIn(3) ? 5000 : Int64.random(in: 1...100_000, using: &random)
            // Whole seconds, so that many deadlines are equal.
            let deadline = random.oneIn(5) ? nil : (now + life) / 1000 * 1000 + 1000
            reported.remove(number)
            stored[number] = deadline
            _ = window.set(name(number), deadline)
        }
        for _ in 0..<30_000 {
            let number = random.below(2000)
            if random.oneIn(2) {
                // An expired entry that was not reported yet is not changed here: its expiry would go unreported.
                if stored[number].map({ $0 > now || reported.contains(number) }) ?? true { change(number) }
            } else if random.oneIn(4) {
                now += Int64(random.below(200))
            }
            while let name = window.popDue(now: now) { report(Int(name.key[0]) << 8 | Int(name.key[1])) }
            if unread == nil, let next = window.beginScan(now: now) {
                (unread, range) = (stored.keys.shuffled(using: &random), next)
            }
            if random.oneIn(3), let left = unread {
                window.beginSlice()
                let slice = left.suffix(100).compactMap { number in
                    stored[number].flatMap { range.contains($0) ? (number, $0) : nil }
                }
                let changing = random.below(2000)
                if stored[changing].map({ $0 > now }) ?? true { change(changing) }
                for (number, deadline) in slice where window.take(name(number), deadline, mayRepeat: false) {
                    report(number)
                }
                window.endSlice()
                unread = left.count > 100 ? left.dropLast(100) : nil
                if unread == nil { window.endScan() }
            }
            #expect(window.count <= 40)
            while let name = window.popDue(now: now) { report(Int(name.key[0]) << 8 | Int(name.key[1])) }
            let until = window.reportedUntil(now: now)
            if random.oneIn(50) {
                #expect(stored.allSatisfy { $0.value >= until || reported.contains($0.key) })
            }
        }
    }
}
