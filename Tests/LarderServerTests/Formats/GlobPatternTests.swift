import LarderEngine
import Testing

/// Tests of the patterns of KEYS and MATCH; the system tests compare them with redis-server itself.
@Suite struct GlobPatternTests {
    @Test(
        arguments: [
            ("", ["": true, "a": false]), ("*", ["": true, "abc": true]), ("**", ["": true, "abc": true]),
            ("a", ["a": true, "": false, "aa": false, "A": false]), ("?", ["a": true, "": false, "ab": false]),
            ("a*c", ["ac": true, "abc": true, "abcb": false, "acc": true]),
            ("*a*b*", ["ab": true, "xaxbx": true, "ba": false]), ("a?c", ["abc": true, "ac": false]),
            ("[abc]", ["a": true, "d": false, "": false]), ("[^abc]", ["a": false, "d": true, "": false]),
            ("[a-c]", ["b": true, "d": false]), ("[c-a]", ["b": true]), ("[a-]", ["a": true, "b": false]),
            ("[^]", ["a": true]), ("[]a", ["]": false, "a": false]), ("[\\]]", ["]": true, "\\": false]),
            ("[\\a-c]", ["a": true, "b": false, "-": true, "c": true]), ("[", ["a": false, "[": false]),
            ("[a", ["a": true, "b": false]), ("\\*", ["*": true, "a": false]), ("\\", ["\\": true, "a": false]),
            ("a\\", ["a\\": true]), ("\\a", ["a": true]),
            ("h[ae]llo*", ["hello": true, "hallow": true, "hillo": false]),
        ] as [(String, [String: Bool])])
    func globPatternsMatchAsInRedis(_ pattern: String, _ texts: [String: Bool]) {
        let glob = GlobPattern(Array(pattern.utf8))
        for (text, expected) in texts {
            #expect(glob.matches(Array(text.utf8)) == expected, "'\(pattern)' against '\(text)'")
            if expected { #expect(Array(text.utf8).starts(with: glob.fixedPrefix)) }
        }
    }

    @Test func patternsWithManyStarsTakeNoExponentialTime() {
        let glob = GlobPattern(Array(String(repeating: "a*", count: 100).utf8) + [UInt8(ascii: "b")])
        #expect(!glob.matches([UInt8](repeating: UInt8(ascii: "a"), count: 10_000)))
    }

    @Test func patternsMatchBytesAboveASCII() {
        #expect(GlobPattern([0x5B, 0x80, 0x2D, 0xFF, 0x5D]).matches([0xC3]))
        #expect(GlobPattern(Array("?".utf8)).matches([0xFF]))
        #expect(!GlobPattern(Array("?".utf8)).matches(Array("ä".utf8)))
    }
}
