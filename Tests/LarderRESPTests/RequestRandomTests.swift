// Random requests, and random bytes, in random pieces.

import LarderTestSupport
import Testing

@testable import LarderRESP

@Suite struct RequestRandomTests {
    @Test func encodedRequestsAreParsedBack() {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<300 {
            var commands: [[[UInt8]]] = []
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 1...20, using: &random) {
                let command = (0..<Int.random(in: 1...6, using: &random)).map { _ in
                    let length =
                        random.oneIn(20)
                        ? Int.random(in: 0...5_000, using: &random) : Int.random(in: 0...20, using: &random)
                    return random.bytes(count: length)
                }
                commands.append(command)
                RequestEncoder.encode(command, into: &bytes)
            }
            let pieces = bytes.randomPieces(upTo: random.oneIn(2) ? 10 : 1_000, using: &random)
            #expect(parse(pieces) == RequestOutcome(commands: commands))
        }
    }

    /// Words are parsed back in whatever way they are quoted.
    @Test func quotedWordsAreParsedBack() {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<500 {
            let words = (0..<Int.random(in: 1...5, using: &random)).map { _ in
                random.bytes(count: Int.random(in: 0...12, using: &random))
            }
            var line: [UInt8] = []
            for word in words { line += quoted(word, using: &random) + [random.oneIn(3) ? 0x09 : 0x20] }
            line += random.oneIn(2) ? [0x0D, 0x0A] : [0x0A]
            #expect(parse(line.randomPieces(upTo: 8, using: &random)) == RequestOutcome(commands: [words]))
        }
    }

    private func quoted(_ word: [UInt8], using random: inout SeededGenerator) -> [UInt8] {
        let plain = word.allSatisfy { (0x30...0x7A).contains($0) && $0 != 0x5C } && !word.isEmpty
        if plain, random.oneIn(2) { return word }
        if !word.contains(where: { $0 == 0x0A || $0 == 0x5C }), random.oneIn(2) {
            return [0x27] + word.flatMap { $0 == 0x27 ? [0x5C, 0x27] : [$0] } + [0x27]
        }
        var text: [UInt8] = [0x22]
        for byte in word {
            switch byte {
            case 0x22, 0x5C: text += [0x5C, byte]
            case 0x0A: text += Array("\\n".utf8)
            case 0x07 where random.oneIn(2): text += Array("\\a".utf8)
            default:
                let hex = String(byte, radix: 16, uppercase: random.oneIn(2))
                text += random.oneIn(2) ? [byte] : Array((byte < 16 ? "\\x0" : "\\x").utf8) + Array(hex.utf8)
            }
        }
        return text + [0x22]
    }

    /// Nearly valid streams are parsed in the same way, however they are split.
    @Test func damagedRequestsAreParsedAlikeHoweverTheyAreSplit() {
        var random = SeededGenerator(seed: testSeed())
        let limits = RESPLimits(
            inlineBytesMax: 40, argumentsMax: 9, bulkBytesMax: 50, headerBytesMax: 24, requestBytesMax: 90)
        var errors = 0
        let rounds = 2_000
        for _ in 0..<rounds {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let command = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                    random.bytes(count: Int.random(in: 0...9, using: &random))
                }
                RequestEncoder.encode(command, into: &bytes)
            }
            for _ in 0..<Int.random(in: 0...3, using: &random) { damage(&bytes, using: &random) }
            let whole = parse([bytes], limits: limits)
            #expect(parse(bytes.drops, limits: limits) == whole)
            #expect(parse(bytes.randomPieces(upTo: 12, using: &random), limits: limits) == whole)
            if whole.error != nil { errors += 1 }
        }
        #expect(errors > rounds / 10 && errors < rounds)
    }

    private func damage(_ bytes: inout [UInt8], using random: inout SeededGenerator) {
        let telling = Array("*$\r\n-019 \"'\\\0x".utf8)
        guard let place = bytes.indices.randomElement(using: &random),
            let byte = telling.randomElement(using: &random)
        else { return }
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[place] = byte
        case 1: bytes.insert(byte, at: place)
        default: bytes.remove(at: place)
        }
    }
}
