/// The reply to INFO, by field. Unknown fields are ignored, so that a newer daemon may send more.
struct InfoText: Sendable {
    private let fields: [String: Substring]
    /// In the order in which they came.
    private let order: [String]

    init(_ text: String) {
        var fields: [String: Substring] = [:]
        var order: [String] = []
        // In Swift CR LF is one character.
        for line in text.split(whereSeparator: { $0 == "\r\n" || $0 == "\n" }) where line.first != "#" {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let name = String(line[..<colon])
            if fields.updateValue(line[line.index(after: colon)...], forKey: name) == nil { order.append(name) }
        }
        self.fields = fields
        self.order = order
    }

    func text(_ name: String) -> String? { fields[name].map(String.init) }

    /// Nil for what is missing or no finite number.
    func number(_ name: String) -> Double? {
        fields[name].flatMap { Double($0) }.flatMap { $0.isFinite ? $0 : nil }
    }

    /// The fields whose names begin with `prefix`: the rest of the name, and the parts `name=number` of the value.
    func lists(_ prefix: String) -> [(name: String, parts: [String: Double])] {
        order.filter { $0.hasPrefix(prefix) }.map { name in
            var parts: [String: Double] = [:]
            for part in (fields[name] ?? "").split(separator: ",") {
                let pair = part.split(separator: "=", maxSplits: 1)
                if pair.count == 2, let number = Double(pair[1]), number.isFinite { parts[String(pair[0])] = number }
            }
            return (String(name.dropFirst(prefix.count)), parts)
        }
    }
}
