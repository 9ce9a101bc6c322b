import Larder

struct Weather: Codable, Sendable {
    var city: String
    var degrees: Double
}

let cache = try Cache(named: "weather", policy: .hours(1), grace: .seconds(600))

@Sendable func measure(_ city: String) async throws -> Weather {
    try await Task.sleep(for: .seconds(2))  // Your request to a service.
    return Weather(city: city, degrees: 7)
}

let bergen = try await cache.value(Weather.self, forKey: "bergen") { try await measure("Bergen") }
print(bergen.degrees)
