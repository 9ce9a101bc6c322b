import LarderPlatform

/// The command line as bytes: `CommandLine.arguments` would change keys and values that are not UTF-8.
enum ProcessArguments {
    /// The words after the program's name.
    static var words: [[UInt8]] {
        (0..<Int(CommandLine.argc)).dropFirst().compactMap { index in
            CommandLine.unsafeArgv[index].map { text in
                Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
            }
        }
    }
}
