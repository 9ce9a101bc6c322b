import Larder

struct Weather: Codable, Sendable {
    var city: String
    var degrees: Double
}

let cache = try Cache(named: "weather", policy: .hours(1))
try cache.set(Weather(city: "Oslo", degrees: 3), forKey: "oslo")
let oslo = try cache.value(Weather.self, forKey: "oslo")
print(oslo?.degrees ?? "unknown")
