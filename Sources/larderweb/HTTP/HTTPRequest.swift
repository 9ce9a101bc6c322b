import LarderPlatform

/// A parsed request. Its contents are not validated yet.
struct HTTPRequest: Sendable {
    let method: String
    let target: RequestTarget
    /// The headers in the order of the request; names in lower case.
    let headers: [(name: String, value: String)]
    let body: [UInt8]

    /// Returns the value of a header, given its lower-case name; nil unless there is exactly one.
    func header(_ name: String) -> String? {
        let values = headers.filter { $0.name == name }
        return values.count == 1 ? values[0].value : nil
    }

    func hasHeader(_ name: String) -> Bool { headers.contains { $0.name == name } }

    /// Returns the value of a cookie; nil unless there is exactly one.
    func cookie(_ name: String) -> String? {
        let all = headers.filter { $0.name == "cookie" }.flatMap { $0.value.split(separator: ";") }
        let values = all.compactMap { pair -> Substring? in
            let pair = pair.drop { $0 == " " }
            return pair.hasPrefix(name + "=") ? pair.dropFirst(name.count + 1) : nil
        }
        return values.count == 1 ? String(values[0]) : nil
    }
}

/// The path and the query of a request. Values are bytes, like keys.
struct RequestTarget: Sendable {
    let path: String
    private let query: [(name: String, value: [UInt8])]

    /// Parses the target in the first line of a request.
    /// - Returns: nil if the target is not a path, or is malformed.
    init?(_ text: [UInt8]) {
        let parts = text.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, first.first == UInt8(ascii: "/"),
            let bytes = PercentEncoding.decoded(first),
            let path = String(validating: bytes, as: UTF8.self), !path.utf8.contains(0)
        else { return nil }
        self.path = path
        guard let query = Self.form(parts.count > 1 ? parts[1] : []) else { return nil }
        self.query = query
    }

    /// Returns the value of a parameter; nil unless there is exactly one.
    func bytes(_ name: String) -> [UInt8]? { Self.value(name, query) }

    func text(_ name: String) -> String? { bytes(name).flatMap { String(validating: $0, as: UTF8.self) } }

    static func value(_ name: String, _ form: [(name: String, value: [UInt8])]) -> [UInt8]? {
        let values = form.filter { $0.name == name }
        return values.count == 1 ? values[0].value : nil
    }

    /// The maximum number of parameters. No valid request has more.
    private static let parametersMax = 16

    /// Parses `name=value&…`.
    /// - Parameter hasPlus: whether `+` means a space, as in form data.
    /// - Returns: nil if it is malformed.
    static func form(_ text: ArraySlice<UInt8>, hasPlus: Bool = false) -> [(name: String, value: [UInt8])]? {
        var form: [(name: String, value: [UInt8])] = []
        for part in text.split(separator: UInt8(ascii: "&")) {
            guard form.count < parametersMax else { return nil }
            let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = PercentEncoding.decoded(pair[0]).flatMap({ String(validating: $0, as: UTF8.self) }) else {
                return nil
            }
            let value = pair.count > 1 ? pair[1] : []
            let spaced = hasPlus ? ArraySlice(value.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 }) : value
            guard let bytes = PercentEncoding.decoded(spaced) else { return nil }
            form.append((name, bytes))
        }
        return form
    }
}
