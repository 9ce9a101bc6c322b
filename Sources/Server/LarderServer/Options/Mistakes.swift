/// What is wrong with a command line and its configuration file, as it is found.
struct Mistakes {
    private var ofCommandLine: [(place: Int, text: String)] = []
    private var ofFile: [String] = []
    /// The options that have no value because of it.
    private var options: Set<String> = []
    /// Whether nobody knows what the file says.
    private var isFileUnknown = false

    /// A file that is no configuration at all has something wrong in every line.
    private static let shownMax = 20

    /// Notes what is wrong with the command line.
    /// - Parameters:
    ///   - place: the number of its word; none for what is wrong with all of them together, which is told last.
    ///   - option: the option that has no value then.
    mutating func note(_ text: String, at place: Int = .max, about option: String? = nil) {
        ofCommandLine.append((place, text))
        if let option { options.insert(option) }
    }

    /// Notes what is wrong with the lines of the file.
    /// - Parameter options: those that have no value then.
    mutating func note(inFile texts: [String], about options: Set<String>) {
        ofFile += texts
        self.options.formUnion(options)
    }

    /// Notes why the file could not be read.
    mutating func note(unreadable text: String) {
        ofFile.append(text)
        isFileUnknown = true
    }

    /// Whether an option has the value that was meant.
    func leaves(_ option: String) -> Bool { !isFileUnknown && !options.contains(option) }

    /// All of it, a line each; nil if nothing is wrong.
    var failure: OptionFailure? {
        guard !ofCommandLine.isEmpty || !ofFile.isEmpty else { return nil }
        // By their places; those of one place as they were found.
        let sorted = ofCommandLine.enumerated().sorted {
            ($0.element.place, $0.offset) < ($1.element.place, $1.offset)
        }
        let lines = Self.cut(sorted.map(\.element.text)) + Self.cut(ofFile)
        return OptionFailure(lines.joined(separator: "\n"), isOfFile: ofCommandLine.isEmpty)
    }

    private static func cut(_ texts: [String]) -> [String] {
        let more = texts.count - shownMax
        return texts.prefix(shownMax) + (more > 0 ? ["and \(more) more"] : [])
    }
}
