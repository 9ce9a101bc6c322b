/// The kind of the server: its protocol version, and whether it is larderd.
struct ServerKind: Equatable {
    /// Whether replies and pushed messages are in RESP3.
    var speaksRESP3 = false
    /// Whether it supports Larder's own commands and options, such as `META`, `PURGE` and `POLICY` of `SET`. Redis does
    /// not.
    var isLarder = true
}
