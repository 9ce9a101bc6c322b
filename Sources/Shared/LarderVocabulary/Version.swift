/// This Larder's version, in `--version` and INFO.
package enum Version {
    package static let text = "0.1.0"
    /// The version of Redis that clients see: they choose their commands by it.
    package static let redis = "7.0.0"
    /// The version as one number, a byte for each part, for scripts to compare.
    package static let redisNumber: Int32 = 0x07_00_00
}
