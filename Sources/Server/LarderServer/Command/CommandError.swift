import LarderEngine

/// An error reply.
struct CommandError: Error, Equatable {
    /// The text starts with the code: `ERR syntax error`. It may contain bytes of the request, which may not be valid
    /// UTF-8.
    let bytes: [UInt8]

    init(_ text: String) { bytes = Array(text.utf8) }

    /// Joins `before`, `shown`, `behind` and `rest`. `shown` and `rest` may be bytes of the request.
    init(_ before: String, _ shown: [UInt8], _ behind: String, _ rest: [UInt8] = []) {
        bytes = Array(before.utf8) + shown + Array(behind.utf8) + rest
    }

    var text: String { String(decoding: bytes, as: UTF8.self) }

    static let syntax = CommandError("ERR syntax error")
    static let notAnInteger = CommandError("ERR value is not an integer or out of range")

    static func arity(_ name: String) -> CommandError {
        CommandError("ERR wrong number of arguments for '\(name)' command")
    }

    /// The error of an EXEC that must not run.
    static func aborted(_ error: CommandError) -> CommandError {
        let text = error.bytes.starts(with: Array("ERR ".utf8)) ? Array(error.bytes.dropFirst(4)) : error.bytes
        return CommandError("EXECABORT Transaction discarded because of: ", text, "")
    }

    init(_ error: LarderError) { self.init("ERR \(error)") }
}
