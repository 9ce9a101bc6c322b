// Requests with their expected results, and ways of delivering them.

@testable import LarderRESP

/// The commands and the error that a parser returned for a stream.
struct RequestOutcome: Equatable {
    var commands: [[[UInt8]]] = []
    var error: ProtocolError?
}

struct RequestFixture: CustomStringConvertible, Sendable {
    var bytes: [UInt8]
    var commands: [[[UInt8]]]
    var error: ProtocolError?
    var limits = RESPLimits()

    /// `error` is the text after `Protocol error: `.
    init(_ text: String, _ commands: [[String]], error: String? = nil, limits: RESPLimits = RESPLimits()) {
        self.init(bytes: Array(text.utf8), commands.map { $0.map { Array($0.utf8) } }, error: error, limits: limits)
    }

    init(bytes: [UInt8], _ commands: [[[UInt8]]], error: String? = nil, limits: RESPLimits = RESPLimits()) {
        self.bytes = bytes
        self.commands = commands
        self.error = error.map { ProtocolError($0) }
        self.limits = limits
    }

    var expected: RequestOutcome { RequestOutcome(commands: commands, error: error) }

    var description: String {
        let text = String(decoding: bytes.prefix(60), as: UTF8.self).debugDescription
        return bytes.count > 60 ? "\(text)… (\(bytes.count) bytes)" : text
    }
}

/// The arguments of the parser's current command, copied.
func currentCommand(_ parser: borrowing RequestParser) -> [[UInt8]] {
    (0..<parser.argumentCount).map { Array(parser.argument($0)) }
}

/// Feeds `pieces` one after the other and reads every command as soon as it is complete. Continues after an error, to
/// check that the error persists. Does this with copied bytes and with lent bytes, and expects the same outcome.
func parse(_ pieces: [some Collection<UInt8>], limits: RESPLimits = RESPLimits()) -> RequestOutcome {
    var outcome = parse(pieces, limits) { (parser, piece, isOdd, outcome) throws(ProtocolError) in
        if isOdd {
            let space = parser.writableSpace(atLeast: piece.count)
            space.copyBytes(from: piece)
            parser.didWrite(piece.count)
        } else {
            parser.append(piece)
        }
        try takeCommands(&parser, &outcome)
    }
    let borrowed = parse(pieces, limits) { (parser, piece, isOdd, outcome) throws(ProtocolError) in
        let lent = UnsafeMutableRawBufferPointer.allocate(byteCount: piece.count, alignment: 1)
        lent.copyBytes(from: piece)
        defer { lent.deallocate() }
        func takeBack() {
            parser.endBorrowing()
            // Overwrite the memory, to detect a parser that still reads it.
            for index in lent.indices { lent[index] = 0x58 }
        }
        parser.borrow(lent)
        defer { takeBack() }
        guard isOdd else { return try takeCommands(&parser, &outcome) }
        // End the borrowing while the arguments of a command are still needed.
        guard try parser.next() else { return }
        takeBack()
        outcome.commands.append(currentCommand(parser))
        try takeCommands(&parser, &outcome)
    }
    if borrowed != outcome { outcome.error = ProtocolError("lent bytes mean something else: \(borrowed)") }
    return outcome
}

private func takeCommands(_ parser: inout RequestParser, _ outcome: inout RequestOutcome) throws(ProtocolError) {
    while try parser.next() { outcome.commands.append(currentCommand(parser)) }
}

private func parse(
    _ pieces: [some Collection<UInt8>], _ limits: RESPLimits,
    _ feed: (inout RequestParser, [UInt8], Bool, inout RequestOutcome) throws(ProtocolError) -> Void
) -> RequestOutcome {
    var parser = RequestParser(limits: limits)
    var outcome = RequestOutcome()
    for (index, piece) in pieces.enumerated() {
        let before = outcome.commands.count
        do throws(ProtocolError) {
            try feed(&parser, Array(piece), !index.isMultiple(of: 2), &outcome)
            if outcome.error != nil { outcome.error = ProtocolError("the parser went on after an error") }
        } catch {
            if outcome.error != nil, outcome.commands.count > before {
                outcome.error = ProtocolError("the parser went on after an error")
            }
            outcome.error = outcome.error ?? error
        }
    }
    return outcome
}

extension [UInt8] {
    /// The bytes one by one.
    var drops: [ArraySlice<UInt8>] { indices.map { self[$0...$0] } }

    /// The bytes in two pieces.
    func split(at index: Int) -> [ArraySlice<UInt8>] { [self[..<index], self[index...]] }

    /// The bytes in pieces of random length, up to `longest`.
    func randomPieces(upTo longest: Int, using generator: inout some RandomNumberGenerator) -> [ArraySlice<UInt8>] {
        var pieces: [ArraySlice<UInt8>] = []
        var start = 0
        while start < count {
            let end = Swift.min(count, start + Int.random(in: 1...longest, using: &generator))
            pieces.append(self[start..<end])
            start = end
        }
        return pieces
    }
}
