/// The fields of one record, in the format of Debian's control files.
public struct Stanza: Sendable {
    /// The number of the record's first line; the first line of the input is 1.
    public let line: Int
    private var values: [String: String] = [:]

    init(line: Int) { self.line = line }

    var isEmpty: Bool { values.isEmpty }

    /// The value of a field, with its lines joined by line breaks; nil if there is no such field. Names are
    /// case-insensitive.
    public subscript(name: String) -> String? { values[name.lowercased()] }

    /// The fields whose names start with a prefix. Each suffix is the name without the prefix, in lower case.
    public func fields(beginning prefix: String) -> [(suffix: String, value: String)] {
        let prefix = prefix.lowercased()
        return values.filter { $0.key.hasPrefix(prefix) }
            .map { (suffix: String($0.key.dropFirst(prefix.count)), value: $0.value) }
    }

    /// Adds a field.
    /// - Returns: false if the field exists already.
    mutating func add(_ name: String, _ value: String) -> Bool {
        values.updateValue(value, forKey: name.lowercased()) == nil
    }
}
