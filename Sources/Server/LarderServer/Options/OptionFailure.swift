/// The errors of the command line or the configuration file.
package struct OptionFailure: Error, CustomStringConvertible {
    /// One line per error.
    package let description: String
    /// Whether the errors are in the configuration file.
    package let isOfFile: Bool

    init(_ description: String, isOfFile: Bool = false) {
        self.description = description
        self.isOfFile = isOfFile
    }
}
