// Splits inline commands (lines of text, not RESP arrays) into words.
//
// Words are separated by white space. A word may end with a quoted part:
// - `"..."` has the escapes \n \r \t \b \a \\ \" and \xHH; a backslash before any other byte is dropped.
// - `'...'` has the escape \'.
//
// A NUL byte is an ordinary byte. (Redis 7 does not find the end of a line that contains NUL, and sends no reply.)

package enum InlineWords {
    /// Splits a line into words.
    /// - Returns: nil if quotes are unbalanced, or if anything but white space follows a closing quote.
    package static func words(of line: some Collection<UInt8>) -> [[UInt8]]? {
        var bytes = Array(line)
        var table = ArgumentTable()
        return bytes.withUnsafeMutableBytes { bytes in
            guard split(bytes, offset: 0, into: &table) else { return nil }
            return (0..<table.count).map { index in
                let slice = table[index]
                return Array(bytes[Int(slice.offset)..<Int(slice.offset + slice.length)])
            }
        }
    }

    /// Splits a line, and replaces the escapes of each word in place. A word never becomes longer.
    ///
    /// - Parameters:
    ///   - line: the line without its line end.
    ///   - offset: added to the position of each word in `words`.
    /// - Returns: false if quotes are unbalanced, or if anything but white space follows a closing quote.
    static func split(_ line: UnsafeMutableRawBufferPointer, offset: Int, into words: inout ArgumentTable) -> Bool {
        var input = 0
        while true {
            while input < line.count, ASCII.isSpace(line[input]) { input += 1 }
            if input == line.count { return true }
            let start = input
            guard let length = unescapeWord(line, at: &input) else { return false }
            words.append(offset: offset + start, length: length)
        }
    }

    /// Replaces the escapes of the word at `input`, and moves `input` behind the word.
    /// - Returns: the new length of the word; nil if its quotes are unbalanced.
    private static func unescapeWord(_ line: UnsafeMutableRawBufferPointer, at input: inout Int) -> Int? {
        let start = input
        var output = input
        while input < line.count {
            let byte = line[input]
            switch byte {
            case ASCII.space, ASCII.tab, ASCII.carriageReturn, ASCII.lineFeed:
                return output - start
            case ASCII.doubleQuote:
                return unescapeDoubleQuoted(line, at: &input, to: &output) ? output - start : nil
            case ASCII.singleQuote:
                return unescapeSingleQuoted(line, at: &input, to: &output) ? output - start : nil
            default:
                line[output] = byte
                output += 1
                input += 1
            }
        }
        return output - start
    }

    private static func unescapeDoubleQuoted(
        _ line: UnsafeMutableRawBufferPointer, at input: inout Int, to output: inout Int
    ) -> Bool {
        input += 1
        while input < line.count {
            var byte = line[input]
            if byte == ASCII.doubleQuote { return closeQuote(line, at: &input) }
            if byte == ASCII.backslash, input + 1 < line.count {
                if let value = hexEscape(line, at: input) {
                    byte = value
                    input += 3
                } else {
                    byte = escaped(line[input + 1])
                    input += 1
                }
            }
            line[output] = byte
            output += 1
            input += 1
        }
        return false
    }

    private static func unescapeSingleQuoted(
        _ line: UnsafeMutableRawBufferPointer, at input: inout Int, to output: inout Int
    ) -> Bool {
        input += 1
        while input < line.count {
            let byte = line[input]
            if byte == ASCII.singleQuote { return closeQuote(line, at: &input) }
            if byte == ASCII.backslash, input + 1 < line.count, line[input + 1] == ASCII.singleQuote { input += 1 }
            line[output] = line[input]
            output += 1
            input += 1
        }
        return false
    }

    private static func closeQuote(_ line: UnsafeMutableRawBufferPointer, at input: inout Int) -> Bool {
        input += 1
        return input == line.count || ASCII.isSpace(line[input])
    }

    /// Returns the byte that the escape `\xHH` at `index` means; nil if there is no such escape.
    private static func hexEscape(_ line: UnsafeMutableRawBufferPointer, at index: Int) -> UInt8? {
        guard index + 3 < line.count, line[index + 1] == UInt8(ascii: "x"),
            let high = ASCII.hexValue(line[index + 2]), let low = ASCII.hexValue(line[index + 3])
        else { return nil }
        return high << 4 | low
    }

    private static func escaped(_ byte: UInt8) -> UInt8 {
        switch byte {
        case UInt8(ascii: "n"): ASCII.lineFeed
        case UInt8(ascii: "r"): ASCII.carriageReturn
        case UInt8(ascii: "t"): ASCII.tab
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "a"): 0x07
        default: byte
        }
    }
}
