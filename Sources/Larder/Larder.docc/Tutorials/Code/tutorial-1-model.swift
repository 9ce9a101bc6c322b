import Larder

struct Weather: Codable, Sendable {
    var city: String
    var degrees: Double
}
