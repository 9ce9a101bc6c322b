import LarderCommandCatalog

/// A call of EVAL or a similar command: the script, and how many of the arguments are keys.
struct ScriptCall {
    let script: Script
    let keyCount: Int
    /// Whether the script must not write.
    let isReadOnly: Bool

    /// The position of the first key in the call.
    static let firstKey = 3
}

/// What the second word of EVAL and similar commands is: the script's text, its digest, or a function's name.
enum ScriptSource {
    case text, digest, function

    /// The row of the command whose second word is of this kind.
    var row: CommandMetadata {
        switch self {
        case .text: .eval
        case .digest: .evalsha
        case .function: .fcall
        }
    }
}
