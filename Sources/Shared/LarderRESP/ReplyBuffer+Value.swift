extension ReplyBuffer {
    /// Appends another server's reply in this connection's version of the protocol. Writes a push as an array.
    package mutating func write(_ value: RESPValue) {
        switch value {
        case .simpleString(let text): simple(text)
        case .error(let text): error(text)
        case .integer(let number): integer(number)
        case .bulk(let bytes): bulk(bytes)
        case .null: null()
        case .array(let elements), .push(let elements):
            array(count: elements.count)
            for element in elements { write(element) }
        case .set(let elements):
            set(count: elements.count)
            for element in elements { write(element) }
        case .map(let pairs):
            map(count: pairs.count)
            for pair in pairs {
                write(pair.key)
                write(pair.value)
            }
        case .double(let number): double(number)
        case .boolean(let flag): boolean(flag)
        case .bigNumber(let digits): bigNumber(digits)
        case .verbatim(let format, let text):
            verbatim(String(decoding: text, as: UTF8.self), format: format == "mkd" ? "mkd" : "txt")
        }
    }
}
