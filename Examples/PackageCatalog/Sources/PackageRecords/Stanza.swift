/// The fields of one record, in the format of Debian's control files.
public struct Stanza: Sendable {
    /// The line that it begins at; the first line of the input is 1.
    public let line: Int
    private var values: [String: String] = [:]

    init(line: Int) { self.line = line }

    var isEmpty: Bool { values.isEmpty }

    /// A field's value, its lines joined by newlines; nil when there is no such field. Upper and lower case of names are
    /// the same.
    public subscript(name: String) -> String? { values[name.lowercased()] }

    /// The fields whose names begin so, with what comes after it in small letters.
    public func fields(beginning prefix: String) -> [(suffix: String, value: String)] {
        let prefix = prefix.lowercased()
        return values.filter { $0.key.hasPrefix(prefix) }
            .map { (suffix: String($0.key.dropFirst(prefix.count)), value: $0.value) }
    }

    /// - Returns: false when the field is there already.
    mutating func add(_ name: String, _ value: String) -> Bool {
        values.updateValue(value, forKey: name.lowercased()) == nil
    }
}
