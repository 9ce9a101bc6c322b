import CLarderMessageDigest
import LarderPlatform
import LarderRESP
import Synchronization

/// The SHA-1 digest of a script's source. EVALSHA identifies the script by this digest.
struct ScriptDigest: Hashable, Sendable {
    private let first: UInt64
    private let second: UInt64
    private let third: UInt32

    private static let digits = Array("0123456789abcdef".utf8)

    /// Computes the digest of a source.
    init(of bytes: UnsafeRawBufferPointer) {
        var context = SHA1_CTX()
        var digest: (UInt64, UInt64, UInt32) = (0, 0, 0)
        SHA1Init(&context)
        if let start = bytes.baseAddress {
            SHA1Update(&context, start.assumingMemoryBound(to: UInt8.self), bytes.count)
        }
        // The three integers of the tuple are contiguous, so the 20 bytes fit.
        withUnsafeMutableBytes(of: &digest) { place in
            if let start = place.baseAddress { SHA1Final(start.assumingMemoryBound(to: UInt8.self), &context) }
        }
        (first, second, third) = (digest.0.bigEndian, digest.1.bigEndian, digest.2.bigEndian)
    }

    /// Parses 40 hexadecimal digits, ignoring case. Returns nil for all other texts.
    init?(hexadecimal text: UnsafeRawBufferPointer) {
        guard text.count == 40 else { return nil }
        var parts: (UInt64, UInt64, UInt64) = (0, 0, 0)
        for (index, byte) in text.enumerated() {
            guard let digit = HexText.digit(byte) else { return nil }
            switch index {
            case ..<16: parts.0 = parts.0 << 4 | UInt64(digit)
            case ..<32: parts.1 = parts.1 << 4 | UInt64(digit)
            default: parts.2 = parts.2 << 4 | UInt64(digit)
            }
        }
        (first, second, third) = (parts.0, parts.1, UInt32(parts.2))
    }

    /// Writes the 40 hexadecimal digits to a buffer, which must be large enough.
    func write(to place: UnsafeMutablePointer<CChar>?) {
        for (index, digit) in hexadecimal.enumerated() { place?[index] = CChar(bitPattern: digit) }
    }

    /// The digest as 40 hexadecimal digits in lower case.
    var hexadecimal: [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(40)
        for shift in stride(from: 60, through: 0, by: -4) { text.append(Self.digits[Int(first >> shift & 15)]) }
        for shift in stride(from: 60, through: 0, by: -4) { text.append(Self.digits[Int(second >> shift & 15)]) }
        for shift in stride(from: 28, through: 0, by: -4) { text.append(Self.digits[Int(third >> shift & 15)]) }
        return text
    }
}

/// The source code of a script or a library, which interpreters compile. Immutable.
struct ScriptCode: Sendable {
    /// The source without a first line that begins with `#!`. The line break of that line is kept, so that error
    /// messages contain the right line numbers.
    let body: [UInt8]
    let isLibrary: Bool
    /// A number that identifies this code in the process.
    let number: Int

    private static let nextNumber = Atomic<Int>(0)

    init(_ body: [UInt8], isLibrary: Bool) {
        self.body = body
        self.isLibrary = isLibrary
        number = Self.nextNumber.wrappingAdd(1, ordering: .relaxed).newValue
    }

    /// Returns the words of the first line of a script or a library: `#!lua` and options.
    static func words(ofFirstLine line: some Collection<UInt8>) -> [Substring] {
        String(decoding: line, as: UTF8.self)
            .split(whereSeparator: { $0 == " " || $0 == "\t" || $0 == "\r" || $0 == "\u{0B}" || $0 == "\u{0C}" })
    }
}

/// A script, or a function in a library. Immutable, except for a few atomic values.
final class Script: Sendable {
    /// The digest of the script's source; nil for a function.
    let digest: ScriptDigest?
    let code: ScriptCode
    /// The first line of the source if it begins with `#!`, otherwise empty.
    private let head: [UInt8]
    /// Whether the script (in its first line: `#!lua flags=no-writes`) or the function (at its registration) has the
    /// flag `no-writes`; nil if the source declares no flags. If it declares flags, EVAL_RO requires this one.
    let noWrites: Bool?
    /// The name in error messages, ending with a zero byte: a script's digest, or a function's name.
    let name: [CChar]
    /// Whether a run in memory was stopped, so that the script now always runs in a transaction.
    let needsTransaction = Atomic<Bool>(false)
    /// When the script was last used: the value of a counter that each use of any script increases.
    let lastUse = Atomic<Int>(0)
    /// Whether SCRIPT LOAD has loaded the script, so that it stays in the cache until SCRIPT FLUSH.
    let isLoaded = Atomic<Bool>(false)

    init(_ digest: ScriptDigest, _ text: UnsafeRawBufferPointer) throws(CommandError) {
        self.digest = digest
        let (noWrites, body) = try Self.parse(text)
        self.noWrites = noWrites
        head = Array(text.prefix(text.count - body.count))
        code = ScriptCode(body, isLibrary: false)
        name = digest.hexadecimal.map { CChar(bitPattern: $0) } + [0]
    }

    init(function name: String, of library: ScriptCode, noWrites: Bool) {
        digest = nil
        code = library
        head = []
        self.noWrites = noWrites
        self.name = name.utf8.map { CChar(bitPattern: $0) } + [0]
    }

    /// The script's source, as EVAL has received it. For a function, the code of its library.
    var text: [UInt8] { head + code.body }

    /// The approximate memory that the script uses in bytes, without its compiled forms.
    var byteCount: Int { head.count + code.body.count + 256 }

    /// The name of the script or function, as a string.
    var title: String { String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self) }

    /// Splits a source into the flag in its first line, and the code.
    private static func parse(_ text: UnsafeRawBufferPointer) throws(CommandError) -> (noWrites: Bool?, body: [UInt8]) {
        guard text.count >= 2, text[0] == UInt8(ascii: "#"), text[1] == UInt8(ascii: "!") else {
            return (nil, Array(text))
        }
        guard let end = text.firstIndex(of: UInt8(ascii: "\n")) else {
            throw CommandError("ERR Invalid script shebang")
        }
        let words = ScriptCode.words(ofFirstLine: UnsafeRawBufferPointer(rebasing: text[2..<end]))
        guard let engine = words.first else { throw CommandError("ERR Invalid engine in script shebang") }
        guard engine.lowercased() == "lua" else {
            throw CommandError("ERR Unexpected engine in script shebang: #!\(engine)")
        }
        var noWrites = false
        for word in words.dropFirst() {
            guard word.hasPrefix("flags=") else { throw CommandError("ERR Unknown lua shebang option: \(word)") }
            for flag in word.dropFirst("flags=".count).split(separator: ",") {
                switch flag {
                case "no-writes": noWrites = true
                // These flags have no effect: Larder never refuses a script for lack of memory or because data is
                // stale, and has no cluster.
                case "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys": break
                default: throw CommandError("ERR Unexpected flag in script shebang: \(flag)")
                }
            }
        }
        return (noWrites, Array(text[end...]))
    }
}
