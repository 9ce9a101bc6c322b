import LarderServices

/// Collects the errors of a command line and its configuration file.
struct Mistakes {
    private var ofCommandLine: [(place: Int, text: String)] = []
    private var ofFile: [String] = []
    /// The options that have no value because of an error.
    private var options: Set<String> = []
    /// Whether the configuration file could not be read, so that any option may be wrong.
    private var isFileUnknown = false

    /// The maximum number of errors that are shown. If the file is not a configuration file, each of its lines is an
    /// error.
    private static let shownMax = 20

    /// Adds an error in the command line.
    /// - Parameters:
    ///   - place: the position of the wrong word. Without it, the error is about several words, and is reported last.
    ///   - option: the option that has no value because of the error.
    mutating func note(_ text: String, at place: Int = .max, about option: String? = nil) {
        ofCommandLine.append((place, text))
        if let option { options.insert(option) }
    }

    /// Adds the errors in the lines of the configuration file.
    /// - Parameter options: the options that have no value because of these errors.
    mutating func note(inFile texts: [String], about options: Set<String>) {
        ofFile += texts
        self.options.formUnion(options)
    }

    /// Adds the reason why the configuration file could not be read.
    mutating func note(unreadable text: String) {
        ofFile.append(text)
        isFileUnknown = true
    }

    /// Whether no error affects the value of an option, so that the value can be checked.
    func leaves(_ option: String) -> Bool { !isFileUnknown && !options.contains(option) }

    /// All errors, one per line; nil if there are none.
    var failure: UsageError? {
        guard !ofCommandLine.isEmpty || !ofFile.isEmpty else { return nil }
        // Sort by position. Errors at the same position stay in the order in which they were found.
        let sorted = ofCommandLine.enumerated().sorted {
            ($0.element.place, $0.offset) < ($1.element.place, $1.offset)
        }
        let lines = Self.cut(sorted.map(\.element.text)) + Self.cut(ofFile)
        return UsageError(lines.joined(separator: "\n"), isOfFile: ofCommandLine.isEmpty)
    }

    private static func cut(_ texts: [String]) -> [String] {
        let more = texts.count - shownMax
        return texts.prefix(shownMax) + (more > 0 ? ["and \(more) more"] : [])
    }
}
