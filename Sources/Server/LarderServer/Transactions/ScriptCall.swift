/// A call of EVAL or a similar command: the script and the position of its keys.
struct ScriptCall {
    let script: Script
    let keyCount: Int
    /// Whether it must not write.
    let isReadOnly: Bool

    /// The index of the first key.
    static let firstKey = 3
}

/// The meaning of the second word of EVAL and similar commands.
enum ScriptSource {
    case text, digest, function
}
