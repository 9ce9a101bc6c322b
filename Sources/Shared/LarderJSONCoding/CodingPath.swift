/// One step from a value to a part of it.
struct PathStep {
    /// The key as the model gave it; nil for an element of an array.
    var key: (any CodingKey)?
    var index = 0

    init(_ key: any CodingKey) { self.key = key }
    init(index: Int) {
        key = nil
        self.index = index
    }

    var codingKey: any CodingKey { key ?? PlainKey(index: index) }
}

/// The key where the model has none of its own, as in arrays, dictionaries and superclasses.
struct PlainKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }
    init(intValue: Int) {
        stringValue = "\(intValue)"
        self.intValue = intValue
    }
    init(index: Int) {
        stringValue = "Index \(index)"
        intValue = index
    }

    static let superclass = PlainKey(stringValue: "super")
}
