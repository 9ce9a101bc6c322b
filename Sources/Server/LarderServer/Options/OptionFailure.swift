/// What is wrong with the command line, or with the configuration file.
package struct OptionFailure: Error, CustomStringConvertible {
    /// One line for each thing that is wrong.
    package let description: String
    /// Whether it is the configuration file that is wrong.
    package let isOfFile: Bool

    init(_ description: String, isOfFile: Bool = false) {
        self.description = description
        self.isOfFile = isOfFile
    }
}
