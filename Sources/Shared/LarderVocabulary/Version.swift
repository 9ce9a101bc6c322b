/// The versions that `--version` and INFO report.
package enum Version {
    package static let text = "0.1.0"
    /// The version of Redis that is reported to clients, because some clients choose their commands by it.
    package static let redis = "7.0.0"
    /// The version of Redis as one number with one byte for each part, for comparisons in scripts.
    package static let redisNumber: Int32 = 0x07_00_00
}
