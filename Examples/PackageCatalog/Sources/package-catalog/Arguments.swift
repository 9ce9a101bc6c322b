/// The command line: a verb, options with a value each, flags, and words.
///
/// A verb reads the options it supports and then calls ``end()``, which throws if any are left.
struct Arguments {
    struct Failure: Error { let message: String }

    private static let flags: Set<String> = ["--check"]

    let verb: String
    private var options: [(name: String, value: String)] = []
    private var words: [String] = []

    init(_ arguments: [String]) throws(Failure) {
        guard let verb = arguments.first else { throw Failure(message: "the verb is missing") }
        self.verb = verb
        var rest = arguments.dropFirst()
        while let word = rest.popFirst() {
            if Self.flags.contains(word) {
                options.append((word, ""))
            } else if word.hasPrefix("--") {
                guard let value = rest.popFirst() else { throw Failure(message: "\(word) needs a value") }
                options.append((word, value))
            } else {
                words.append(word)
            }
        }
    }

    /// Returns an option's value, the last one if it is repeated; nil if it is not given.
    mutating func option(_ name: String) -> String? { all(name).last }

    /// Returns all values of an option that may be repeated.
    mutating func all(_ name: String) -> [String] {
        defer { options.removeAll { $0.name == name } }
        return options.filter { $0.name == name }.map(\.value)
    }

    mutating func flag(_ name: String) -> Bool { !all(name).isEmpty }

    mutating func required(_ name: String) throws(Failure) -> String {
        guard let value = option(name) else { throw Failure(message: "\(verb) needs \(name)") }
        return value
    }

    mutating func number(_ name: String, default number: Int, in range: ClosedRange<Int>) throws(Failure) -> Int {
        guard let text = option(name) else { return number }
        guard let value = Int(text), range.contains(value) else {
            throw Failure(message: "\(name) must be a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    /// The one word after the options.
    mutating func word(_ what: String) throws(Failure) -> String {
        guard !words.isEmpty else { throw Failure(message: "\(verb) needs \(what)") }
        return words.removeFirst()
    }

    func end() throws(Failure) {
        if let option = options.first { throw Failure(message: "\(verb) has no option \(option.name)") }
        if let word = words.first { throw Failure(message: "\(verb): unexpected argument '\(word)'") }
    }
}
