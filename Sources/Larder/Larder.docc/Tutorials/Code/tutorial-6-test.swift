import Larder
import Testing

struct Weather: Codable, Sendable {
    var city: String
    var degrees: Double
}

@Test func weatherExpiresAfterAnHour() throws {
    let time = ManualTimeSource()
    var options = CacheOptions()
    options.timeSource = time
    let cache = try Cache.inMemory(policy: .hours(1), options: options)

    try cache.set(Weather(city: "Oslo", degrees: 3), forKey: "oslo")
    time.advance(milliseconds: 3_600_000)
    #expect(try cache.value(Weather.self, forKey: "oslo") == nil)
}
