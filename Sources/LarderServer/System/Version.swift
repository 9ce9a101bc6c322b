/// This Larder's version, as `--version` and INFO say it.
package enum Version {
    package static let text = "0.1.0"
}
