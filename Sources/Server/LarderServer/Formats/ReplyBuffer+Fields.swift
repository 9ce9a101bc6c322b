import LarderRESP

/// Parts of replies that many commands have.
extension ReplyBuffer {
    /// Writes an array of texts.
    mutating func texts(_ texts: [String]) {
        array(count: texts.count)
        for text in texts { bulk(text) }
    }

    /// Writes an array of words.
    mutating func words(_ words: [[UInt8]]) {
        array(count: words.count)
        for word in words { bulk(word) }
    }

    /// Writes an array of integers, with null for nil.
    mutating func integers(_ numbers: [Int64?]) {
        array(count: numbers.count)
        for number in numbers { if let number { integer(number) } else { null() } }
    }

    mutating func word(_ word: [UInt8]?) { if let word { bulk(word) } else { null() } }

    /// Writes a key of a map, and its value.
    mutating func field(_ name: String, _ text: String) {
        bulk(name)
        bulk(text)
    }

    mutating func field(_ name: String, _ number: some BinaryInteger) {
        bulk(name)
        integer(Int64(number))
    }

    mutating func field(_ name: String, _ list: [String]) {
        bulk(name)
        texts(list)
    }
}
