import LarderPlatform

/// The path of the package's sources.
package enum PackageRoot {
    /// The directory with Package.swift above this file, without a slash at the end.
    package static let path: String = {
        var words = #filePath.split(separator: "/", omittingEmptySubsequences: false)
        while words.count > 1, access(words.joined(separator: "/") + "/Package.swift", F_OK) != 0 { words.removeLast() }
        return words.joined(separator: "/")
    }()
}
