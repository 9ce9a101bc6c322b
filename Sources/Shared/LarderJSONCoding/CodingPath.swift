/// One step of a coding path: from a value to one of its fields or elements.
struct PathStep {
    /// The model's key; nil for an element of an array.
    var key: (any CodingKey)?
    var index = 0

    init(_ key: any CodingKey) { self.key = key }
    init(index: Int) {
        key = nil
        self.index = index
    }

    var codingKey: any CodingKey { key ?? PlainKey(index: index) }
}

/// The coding key of steps for which a model has no key type: array elements, dictionary fields and superclasses.
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
