// Encodes a client's requests.

/// Encodes commands as arrays of bulk strings, which every RESP server understands.
package enum RequestEncoder {
    /// Appends one command to `output`. `arguments` starts with the command's name, and must not be empty.
    package static func encode(_ arguments: [[UInt8]], into output: inout [UInt8]) {
        precondition(!arguments.isEmpty, "a command must have a name")
        // For each bulk string: its bytes, `$`, two line ends, and up to seven digits.
        let needed = arguments.reduce(output.count + 8) { $0 + $1.count + 12 }
        // Double the capacity. Reserving only the needed space would copy a long pipeline again for each command.
        if needed > output.capacity { output.reserveCapacity(max(needed, output.capacity * 2)) }
        appendHeader(UInt8(ascii: "*"), arguments.count, to: &output)
        for argument in arguments {
            appendHeader(UInt8(ascii: "$"), argument.count, to: &output)
            output.append(contentsOf: argument)
            output.append(ASCII.carriageReturn)
            output.append(ASCII.lineFeed)
        }
    }

    /// Like ``encode(_:into:)-([[UInt8]],_)``, with the arguments as text, which is encoded as UTF-8.
    package static func encode(_ arguments: [String], into output: inout [UInt8]) {
        encode(arguments.map { Array($0.utf8) }, into: &output)
    }

    /// Returns several commands in wire format.
    package static func encoded(_ commands: [[[UInt8]]]) -> [UInt8] {
        var bytes: [UInt8] = []
        // Reserve space for all commands at once, because `encode` reserves it for one command at a time.
        bytes.reserveCapacity(commands.reduce(0) { $1.reduce($0 + 24) { $0 + $1.count + 24 } })
        for command in commands { encode(command, into: &bytes) }
        return bytes
    }

    private static func appendHeader(_ type: UInt8, _ number: Int, to output: inout [UInt8]) {
        output.append(type)
        output.append(contentsOf: String(number).utf8)
        output.append(ASCII.carriageReturn)
        output.append(ASCII.lineFeed)
    }
}
