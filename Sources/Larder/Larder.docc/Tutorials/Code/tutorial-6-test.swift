import Larder

struct Weather: Codable, Sendable {
    var city: String
    var degrees: Double
}

let time = ManualTimeSource()
var options = CacheOptions()
options.timeSource = time
let cache = try Cache.inMemory(policy: .hours(1), options: options)

try cache.set(Weather(city: "Oslo", degrees: 3), forKey: "oslo")
time.advance(milliseconds: 3_600_000)
let later = try cache.value(Weather.self, forKey: "oslo")
precondition(later == nil)
