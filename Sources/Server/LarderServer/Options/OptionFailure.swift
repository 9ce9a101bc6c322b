/// The errors of the command line or the configuration file.
package struct OptionFailure: Error, CustomStringConvertible {
    /// All errors, one in each line.
    package let description: String
    /// Whether all errors are in the configuration file.
    package let isOfFile: Bool

    init(_ description: String, isOfFile: Bool = false) {
        self.description = description
        self.isOfFile = isOfFile
    }
}
