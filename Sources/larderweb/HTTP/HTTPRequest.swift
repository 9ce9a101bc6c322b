/// A request, as far as it is understood: nothing in it has been believed yet.
struct HTTPRequest: Sendable {
    let method: String
    let target: RequestTarget
    /// In their order; names in lower case.
    let headers: [(name: String, value: String)]
    let body: [UInt8]

    /// Its value if there is exactly one header of that name, in lower case.
    func header(_ name: String) -> String? {
        let values = headers.filter { $0.name == name }
        return values.count == 1 ? values[0].value : nil
    }

    func hasHeader(_ name: String) -> Bool { headers.contains { $0.name == name } }

    /// The value of a cookie; nil if there is none, or more than one.
    func cookie(_ name: String) -> String? {
        let all = headers.filter { $0.name == "cookie" }.flatMap { $0.value.split(separator: ";") }
        let values = all.compactMap { pair -> Substring? in
            let pair = pair.drop { $0 == " " }
            return pair.hasPrefix(name + "=") ? pair.dropFirst(name.count + 1) : nil
        }
        return values.count == 1 ? String(values[0]) : nil
    }
}
