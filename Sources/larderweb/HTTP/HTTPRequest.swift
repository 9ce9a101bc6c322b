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
