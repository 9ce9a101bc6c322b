import LarderFetching
import LarderTestSupport
import Testing

@Suite struct AgeLimitTests {
    /// The caller and the store use different clocks, in whole milliseconds. Whatever the rounding, no value from
    /// before the first request is accepted.
    @Test("a fetch with a maximum age of 0 accepts no value from before its request")
    func valuesFromBeforeTheFirstRequestAreNotAccepted() {
        let clock = Guarded<Int64>(0)
        for (maxAge, waited, expected) in [
            (Int64?.none, Int64(50), Int64?.none), (0, 0, 0), (0, 1, 0), (0, 2, 0), (0, 3, 1), (0, 100, 98),
            (0, 30_000, 29_968), (500, 100, 500), (500, 5_000, 4_993),
        ] {
            clock.value = 1_000
            var limit = AgeLimit(maxAge) { clock.value }
            #expect(limit.now == maxAge)
            limit.answered()
            clock.value += waited
            #expect(limit.now == expected)
            // A second reply changes nothing: the age counts from the first one.
            limit.answered()
            #expect(limit.now == expected)
        }
    }
}
