import Testing

@testable import larderbench

@Suite struct LedgerTests {
    @Test("live bytes are those of the newest unexpired value of each key") func liveBytes() {
        let ledger = Ledger(.resp)
        ledger.note(key: 1, Load.Kind(valueBytes: 84), at: 0)
        ledger.note(key: 2, Load.Kind(valueBytes: 184, lifetimeMilliseconds: 1500), at: 0)
        #expect(ledger.liveBytes(at: 1) == 300)
        #expect(ledger.liveBytes(at: 1.5) == 100)
        ledger.note(key: 1, Load.Kind(valueBytes: 4), at: 2)
        #expect(ledger.liveBytes(at: 2) == 20)
        #expect(ledger.acceptedBytes == 320)
    }

    @Test("memcached's lifetimes end with a whole second") func wholeSeconds() {
        let ledger = Ledger(.memcached)
        ledger.note(key: 2, Load.Kind(valueBytes: 184, lifetimeMilliseconds: 1500), at: 0)
        #expect(ledger.liveBytes(at: 1.9) == 200 && ledger.liveBytes(at: 2) == 0)
    }

    @Test("the short-lived share has overwritten and expired entries, and those that were stored later do not count")
    func shortLived() {
        let ledger = Ledger(.resp, shortLife: 10)
        let forever = Load.Kind(valueBytes: 84)
        ledger.note(key: 1, forever, at: 0)
        ledger.note(key: 1, forever, at: 9)
        ledger.note(key: 2, Load.Kind(valueBytes: 84, lifetimeMilliseconds: 5000), at: 0)
        ledger.note(key: 3, Load.Kind(valueBytes: 84, lifetimeMilliseconds: 50_000), at: 0)
        ledger.isJudging = false
        ledger.note(key: 4, forever, at: 10)
        ledger.note(key: 4, forever, at: 11)
        ledger.note(key: 1, forever, at: 30)
        #expect(ledger.shortLivedPercent(at: 60) == 50)
    }
}
