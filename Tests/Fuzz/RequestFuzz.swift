// Fuzzing of the request parser with libFuzzer. Not a part of the package: `make fuzz` builds and runs it.
//
// The first two bytes of an input select limits and the sizes of pieces. The rest is the stream. A stream must have the
// same result as a whole and in pieces, within the limits, with time and memory in proportion to its length.

private struct Outcome: Equatable {
    var commands: [[[UInt8]]] = []
    var error: ProtocolError?
    /// The number of bytes that no command has consumed; 0 after an error.
    var left = 0
}

private let tight = RESPLimits(
    inlineBytesMax: 40, argumentsMax: 9, bulkBytesMax: 50, headerBytesMax: 24, requestBytesMax: 90)

private func parse(_ stream: UnsafeRawBufferPointer, pieces: Int, limits: RESPLimits) -> Outcome {
    var parser = RequestParser(limits: limits)
    var outcome = Outcome()
    var start = 0
    while start < stream.count, outcome.error == nil {
        let piece = UnsafeRawBufferPointer(rebasing: stream[start..<min(start + pieces, stream.count)])
        if pieces.isMultiple(of: 2) {
            parser.append(piece)
        } else {
            parser.writableSpace(atLeast: piece.count).copyMemory(from: piece)
            parser.didWrite(piece.count)
        }
        start += piece.count
        do {
            while try parser.next() {
                outcome.commands.append((0..<parser.argumentCount).map { Array(parser.argument($0)) })
            }
        } catch {
            outcome.error = error
        }
        if pieces == 5 { parser.reclaim() }
    }
    outcome.left = outcome.error == nil ? parser.bufferedBytes : 0
    precondition(parser.work.bytesExamined <= 2 * stream.count + 40, "work is not linear")
    precondition(pieces == 5 || parser.work.bytesMoved <= 3 * stream.count + 40, "moves are not linear")
    precondition(parser.capacity <= 20 * stream.count + 200, "memory is not bounded by what arrived")
    return outcome
}

private func check(_ outcome: Outcome, _ limits: RESPLimits) {
    for command in outcome.commands {
        precondition(!command.isEmpty && command.count <= limits.argumentsMax)
        let longest = max(limits.bulkBytesMax, limits.inlineBytesMax)
        for argument in command { precondition(argument.count <= longest) }
        // Parsed commands have the same result when they are encoded in the standard form.
        if limits == tight { continue }
        var bytes: [UInt8] = []
        RequestEncoder.encode(command, into: &bytes)
        let again = bytes.withUnsafeBytes { parse($0, pieces: 1_000, limits: limits) }
        precondition(again == Outcome(commands: [command]))
    }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRequest(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let start, count > 2 else { return 0 }
    let limits = start[0].isMultiple(of: 2) ? tight : RESPLimits()
    let stream = UnsafeRawBufferPointer(start: start + 2, count: count - 2)
    let whole = parse(stream, pieces: max(stream.count, 6), limits: limits)
    check(whole, limits)
    precondition(parse(stream, pieces: Int(start[1] % 16) + 1, limits: limits) == whole, "pieces change the meaning")
    return 0
}
