/// The kind of the server.
struct ServerKind: Equatable {
    /// Whether replies and pushed messages are in RESP3.
    var speaksRESP3 = false
    /// Whether it supports Larder's own words: `POLICY` and `CODEC` of `SET`, `META`, `PURGE`. Redis does not.
    var isLarder = true
}
