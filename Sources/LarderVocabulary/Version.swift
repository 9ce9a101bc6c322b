/// This Larder's version, as `--version` and INFO say it.
package enum Version {
    package static let text = "0.1.0"
    /// The version of Redis that clients are told: by it they choose what they use.
    package static let redis = "7.0.0"
}
