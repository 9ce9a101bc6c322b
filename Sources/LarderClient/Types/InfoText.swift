/// The reply to INFO, by field. Unknown fields are ignored, so that a newer daemon may send more.
package struct InfoText: Sendable {
    private let fields: [String: Substring]
    /// The names of the fields, in the order of the reply.
    private let order: [String]

    package init(_ text: String) {
        var fields: [String: Substring] = [:]
        var order: [String] = []
        // In Swift, CR LF is one character.
        for line in text.split(whereSeparator: { $0 == "\r\n" || $0 == "\n" }) where line.first != "#" {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let name = String(line[..<colon])
            if fields.updateValue(line[line.index(after: colon)...], forKey: name) == nil { order.append(name) }
        }
        self.fields = fields
        self.order = order
    }

    package func text(_ name: String) -> String? { fields[name].map(String.init) }

    /// Returns the number in a field; nil if the field is missing or not a finite number.
    package func number(_ name: String) -> Double? {
        fields[name].flatMap { Double($0) }.flatMap { $0.isFinite ? $0 : nil }
    }

    /// Returns the fields whose names begin with `prefix`, each with the rest of its name and the `name=number` parts
    /// of its value.
    package func lists(_ prefix: String) -> [(name: String, parts: [String: Double])] {
        textLists(prefix).map { name, parts in
            var numbers: [String: Double] = [:]
            for (part, text) in parts {
                if let number = Double(text), number.isFinite { numbers[String(part)] = number }
            }
            return (name, numbers)
        }
    }

    /// Like ``lists(_:)``, with the numbers as text, in the order of the reply.
    package func textLists(_ prefix: String) -> [(name: String, parts: [(name: Substring, text: Substring)])] {
        order.filter { $0.hasPrefix(prefix) }.map { name in
            let parts = (fields[name] ?? "").split(separator: ",").compactMap { part in
                let pair = part.split(separator: "=", maxSplits: 1)
                return pair.count == 2 ? (name: pair[0], text: pair[1]) : nil
            }
            return (String(name.dropFirst(prefix.count)), parts)
        }
    }
}
