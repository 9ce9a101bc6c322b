import LarderEngine

struct CommandError: Error, Equatable {
    /// The text. It begins with a code: `ERR syntax error`. A text that quotes the request may be invalid UTF-8.
    let bytes: [UInt8]

    init(_ text: String) { bytes = Array(text.utf8) }

    /// Creates an error whose text consists of four parts. `shown` and `rest` may be bytes from the request.
    init(_ before: String, _ shown: [UInt8], _ behind: String, _ rest: [UInt8] = []) {
        bytes = Array(before.utf8) + shown + Array(behind.utf8) + rest
    }

    var text: String { String(decoding: bytes, as: UTF8.self) }

    static let syntax = CommandError("ERR syntax error")
    static let notAnInteger = CommandError("ERR value is not an integer or out of range")

    static func tooLongKey(_ count: Int) -> CommandError {
        CommandError("ERR key is \(count) bytes long, the longest is \(Key.bytesMax)")
    }

    static func arity(_ name: String) -> CommandError {
        CommandError("ERR wrong number of arguments for '\(name)' command")
    }

    /// Returns EXEC's error for a discarded transaction.
    static func aborted(_ error: CommandError) -> CommandError {
        let text = error.bytes.starts(with: Array("ERR ".utf8)) ? Array(error.bytes.dropFirst(4)) : error.bytes
        return CommandError("EXECABORT Transaction discarded because of: ", text, "")
    }

    init(_ error: LarderError) { self.init("ERR \(error)") }

    /// Returns the result of an engine operation. Converts the operation's error to the error of a command.
    @inline(__always)
    static func wrap<Value>(_ operation: @autoclosure () throws(LarderError) -> Value) throws(CommandError) -> Value {
        do throws(LarderError) { return try operation() } catch { throw CommandError(error) }
    }
}
