import Larder

struct Weather: Codable, Sendable {
    var city: String
    var degrees: Double
}

let cache = try Cache(named: "weather", policy: .hours(1))
