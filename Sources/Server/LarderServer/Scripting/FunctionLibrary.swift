import CLarderLuaBridge
import LarderRESP

/// A function library that FUNCTION LOAD has loaded. Immutable.
struct FunctionLibrary: Sendable {
    let name: String
    /// The whole source, including the first line with the library's name.
    let text: [UInt8]
    /// The functions, in the order in which the library has registered them.
    let functions: [LibraryFunction]
    let code: ScriptCode

    /// Splits a source into the library's name, which is in the first line, and the code.
    /// - Throws: the same errors as Redis 7.0. Quotes in the first line are not supported.
    static func parse(_ text: [UInt8]) throws(CommandError) -> (name: String, code: ScriptCode) {
        guard text.count >= 2, text[0] == UInt8(ascii: "#"), text[1] == UInt8(ascii: "!") else {
            throw CommandError("ERR Missing library metadata")
        }
        guard let end = text.firstIndex(of: UInt8(ascii: "\n")) else {
            throw CommandError("ERR Invalid library metadata")
        }
        let words = ScriptCode.words(ofFirstLine: text[..<end])
        var name: String?
        for word in words.dropFirst() {
            guard word.prefix(5).lowercased() == "name=" else {
                throw CommandError("ERR Invalid metadata value given: \(word.prefix(128))")
            }
            guard name == nil else {
                throw CommandError("ERR Invalid metadata value, name argument was given multiple times")
            }
            name = String(word.dropFirst(5))
        }
        guard let name else { throw CommandError("ERR Library name was not given") }
        guard isName(name.utf8) else { throw CommandError("ERR \(nameRule)") }
        let engine = words.first?.dropFirst(2) ?? ""
        guard engine.lowercased() == "lua" else { throw CommandError("ERR Engine '\(engine.prefix(128))' not found") }
        return (name, ScriptCode(Array(text[end...]), isLibrary: true))
    }

    /// Whether the name of a library or of a function is valid.
    static func isName(_ name: some Collection<UInt8>) -> Bool {
        !name.isEmpty
            && name.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    /// Redis' error message for an invalid library name. Used for function names too.
    static let nameRule: StaticString =
        "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"
}

/// A function in a library. Immutable.
struct LibraryFunction: Sendable {
    let name: String
    let description: [UInt8]?
    /// The function's flags as bits. Bit n is the flag whose name `larder_script_flag_name(n)` returns.
    let flags: UInt32
    let script: Script

    /// The bit of the flag `no-writes`, which forbids the function to write.
    static let noWrites: UInt32 = 1

    /// The names that Redis uses for the function's flags.
    var flagNames: [String] {
        var names: [String] = []
        var bit: UInt32 = 0
        while let name = larder_script_flag_name(bit) {
            if flags & 1 << bit != 0 { names.append(String(cString: name)) }
            bit += 1
        }
        return names
    }
}
