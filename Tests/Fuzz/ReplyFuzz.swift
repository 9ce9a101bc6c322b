// Fuzzing of the reply parser with libFuzzer. Not a part of the package: `make fuzz` builds and runs it.
//
// The first two bytes of an input select limits and the sizes of pieces. The rest is the stream. A stream must have the
// same result as a whole and in pieces, at a cost in proportion to the stream's length.

private struct Outcome {
    var replies: [RESPValue] = []
    var error: ProtocolError?
}

private let tight = RESPLimits(
    bulkBytesMax: 50, headerBytesMax: 24, requestBytesMax: 150, elementsMax: 12, depthMax: 3)

private func parse(_ stream: UnsafeRawBufferPointer, pieces: Int, limits: RESPLimits) -> Outcome {
    var parser = ReplyParser(limits: limits)
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
            while let reply = try parser.next() { outcome.replies.append(reply) }
        } catch {
            outcome.error = error
        }
    }
    precondition(parser.work.bytesExamined <= stream.count, "work is not linear")
    precondition(parser.work.bytesMoved <= 3 * stream.count + 40, "moves are not linear")
    return outcome
}

/// Like ==, except that NaN equals NaN.
private func same(_ left: RESPValue, _ right: RESPValue) -> Bool {
    switch (left, right) {
    case (.double(let left), .double(let right)):
        return left == right || left.isNaN && right.isNaN
    case (.array(let left), .array(let right)), (.set(let left), .set(let right)), (.push(let left), .push(let right)):
        return left.count == right.count && zip(left, right).allSatisfy(same)
    case (.map(let left), .map(let right)):
        return left.count == right.count
            && zip(left, right).allSatisfy { same($0.key, $1.key) && same($0.value, $1.value) }
    default:
        return left == right
    }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzReply(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let start, count > 2 else { return 0 }
    let limits = start[0].isMultiple(of: 2) ? tight : RESPLimits()
    let stream = UnsafeRawBufferPointer(start: start + 2, count: count - 2)
    let whole = parse(stream, pieces: stream.count, limits: limits)
    let parts = parse(stream, pieces: Int(start[1] % 16) + 1, limits: limits)
    precondition(parts.error == whole.error, "pieces change the error")
    precondition(
        parts.replies.count == whole.replies.count && zip(parts.replies, whole.replies).allSatisfy(same),
        "pieces change the meaning")
    return 0
}
