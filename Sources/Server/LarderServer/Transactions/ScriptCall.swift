/// A call of EVAL or its like: which script, and which words are keys. A value.
struct ScriptCall {
    let script: Script
    let keyCount: Int
    /// Whether it may not write.
    let isReadOnly: Bool

    /// Where the keys begin.
    static let firstKey = 3
}

/// What the second word of EVAL and its like is.
enum ScriptSource {
    case text, digest, function
}
