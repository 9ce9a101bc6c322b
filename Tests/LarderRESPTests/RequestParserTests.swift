// Tests the memory and the work of the request parser, and the state that it keeps between commands.

import LarderTestSupport
import Testing

@testable import LarderRESP

@Suite struct RequestParserTests {
    @Test func argumentsStayValidUntilTheNextCommand() throws {
        var parser = RequestParser()
        parser.append(Array("*2\r\n$3\r\nGET\r\n$3\r\nkey\r\nPI".utf8))
        #expect(parser.argumentCount == 0)
        #expect(try parser.next())
        // Bytes may arrive, and memory may be released, while the command runs.
        parser.append([UInt8](repeating: 0x20, count: 100_000))
        parser.reclaim()
        #expect(currentCommand(parser) == [Array("GET".utf8), Array("key".utf8)])
        #expect(parser.bufferedBytes == 100_002)
        parser.append(Array("\n".utf8))
        #expect(throws: ProtocolError("too big inline request")) { try parser.next() }
        #expect(parser.argumentCount == 0)
    }

    @Test func bufferedBytesCountIncompleteCommandsOnly() throws {
        var parser = RequestParser()
        #expect(parser.bufferedBytes == 0)
        parser.append(Array("PING\r\n*1\r\n$4\r\nPI".utf8))
        #expect(parser.bufferedBytes == 16)
        #expect(try parser.next())
        #expect(parser.bufferedBytes == 10)
        #expect(try !parser.next())
        #expect(parser.bufferedBytes == 10)
        parser.append(Array("NG\r\n".utf8))
        #expect(try parser.next())
        #expect(parser.bufferedBytes == 0)
    }

    @Test func aProtocolErrorIsPermanent() throws {
        var parser = RequestParser()
        parser.append(Array("PING\r\n*x\r\nPING\r\n".utf8))
        #expect(try parser.next())
        for _ in 0..<3 {
            #expect(throws: ProtocolError("invalid multibulk length")) { try parser.next() }
            #expect(parser.argumentCount == 0)
            parser.append(Array("PING\r\n".utf8))
        }
    }

    @Test func memoryGrowsWithReceivedBytesNotWithAnnouncedLengths() throws {
        var parser = RequestParser()
        parser.append(Array("*1048576\r\n$536870912\r\nabc".utf8))
        #expect(try !parser.next())
        #expect(parser.capacity < 1_000)
        parser.append([UInt8](repeating: 0, count: 10_000))
        #expect(try !parser.next())
        #expect(parser.capacity < 30_000)
    }

    /// The parser does not wait for the next request, which may never arrive.
    @Test func theMemoryOfALargeRequestIsReleasedAtOnce() throws {
        var parser = RequestParser()
        parser.append(Array("*2\r\n$4\r\nPING\r\n$3000000\r\n".utf8))
        parser.append([UInt8](repeating: 7, count: 3_000_000))
        parser.append(Array("\r\n".utf8))
        #expect(try parser.next())
        #expect(parser.argument(1).count == 3_000_000)
        #expect(try !parser.next())
        #expect(parser.capacity < 10_000)
        parser.append(Array("PING\r\n".utf8))
        #expect(try parser.next())
    }

    @Test func aBigBulkStringUsesNoMoreMemoryThanNeeded() throws {
        let length = 3_000_000
        var parser = RequestParser()
        parser.append(Array("*2\r\n$4\r\nPING\r\n$\(length)\r\n".utf8))
        var left = length + 2
        var allocations = 0
        var capacity = parser.capacity
        while left > 0 {
            #expect(try !parser.next())
            let space = parser.writableSpace(atLeast: 65_536)
            let count = min(left, 65_536)
            space[..<count].initializeMemory(as: UInt8.self, repeating: 0x61)
            if left <= 65_536 {
                space[count - 2] = 13
                space[count - 1] = 10
            }
            parser.didWrite(count)
            left -= count
            if parser.capacity != capacity { allocations += 1 }
            capacity = parser.capacity
        }
        #expect(try parser.next())
        #expect(parser.argument(1).count == length)
        #expect(parser.capacity < length + 70_000)
        #expect(allocations < 10)
        // After a very big command, the buffer for the next read is small again.
        #expect(try !parser.next())
        _ = parser.writableSpace(atLeast: 65_536)
        #expect(parser.capacity < 70_000)
    }

    /// Moving the received part repeatedly would delay other clients. Allocating the full length at the first byte
    /// would let any client use all memory.
    @Test func receivingAVeryLongBulkStringMovesFewBytes() throws {
        let length = 64 << 20
        var parser = RequestParser()
        parser.append(Array("*2\r\n$4\r\nPING\r\n$\(length)\r\n".utf8))
        var arrived = 0
        while arrived < length {
            #expect(try !parser.next())
            let count = parser.writableSpace(atLeast: 65_536).count
            #expect(parser.capacity <= max(1 << 18, 16 * arrived + 70_000 + count))
            parser.didWrite(min(count, length - arrived))
            arrived += count
        }
        #expect(parser.capacity < length + 200_000)
        #expect(parser.work.bytesMoved < length / 4)
    }

    @Test func anIdleParserUsesLittleMemory() throws {
        var parser = RequestParser()
        _ = parser.writableSpace(atLeast: 65_536)
        parser.append(Array("*100\r\n".utf8) + Array(repeatElement(Array("$1\r\na\r\n".utf8), count: 100).joined()))
        #expect(try parser.next())
        #expect(try !parser.next())
        #expect(parser.capacity > 65_536)
        parser.reclaim()
        #expect(parser.capacity < 100)
        parser.append(Array("*2\r\n$4\r\nPING\r\n$3\r\na".utf8))
        #expect(try !parser.next())
        parser.reclaim()
        #expect(parser.capacity < 100)
        parser.append(Array("bc\r\n".utf8))
        #expect(try parser.next())
        #expect(currentCommand(parser) == [Array("PING".utf8), Array("abc".utf8)])
    }

    @Test func repeatedPipelinesDoNotGrowTheBuffer() throws {
        var parser = RequestParser()
        var pipeline: [UInt8] = []
        for index in 0..<100 {
            RequestEncoder.encode(["SET", "key:\(index)", String(repeating: "v", count: index)], into: &pipeline)
        }
        // The pieces end within commands.
        var capacity = 0
        for round in 0..<50 {
            var commands = 0
            for start in stride(from: 0, to: pipeline.count, by: 1_000) {
                let piece = pipeline[start..<min(start + 1_000, pipeline.count)]
                parser.writableSpace(atLeast: 1_000).copyBytes(from: piece)
                parser.didWrite(piece.count)
                while try parser.next() { commands += 1 }
            }
            #expect(commands == 100)
            if round == 0 { capacity = parser.capacity }
            #expect(parser.capacity == capacity)
        }
    }

    @Test func parsingRequestsFromSmallPiecesTakesLinearWork() throws {
        let value = [UInt8](repeating: 0x0D, count: 100_000)
        var bytes: [UInt8] = []
        RequestEncoder.encode([Array("SET".utf8), Array("key".utf8), value], into: &bytes)
        bytes += [UInt8](repeating: 0x61, count: 60_000) + [10]
        bytes += Array("*-00".utf8) + [UInt8](repeating: 0x30, count: 60_000)
        for step in [1, 2, 7, 1_000] {
            var parser = RequestParser()
            var commands = 0
            for start in stride(from: 0, to: bytes.count, by: step) {
                parser.append(Array(bytes[start..<min(start + step, bytes.count)]))
                while try parser.next() { commands += 1 }
            }
            #expect(commands == 2)
            #expect(parser.work.bytesExamined < 2 * 130_000, "pieces of \(step) bytes")
            #expect(parser.work.bytesMoved < 3 * bytes.count, "pieces of \(step) bytes")
        }
    }

    /// A server that stops running commands for a while keeps reading, a little at a time.
    @Test func parsingWithABacklogTakesLinearWork() throws {
        var pipeline: [UInt8] = []
        for _ in 0..<20_000 { RequestEncoder.encode(["PING"], into: &pipeline) }
        var parser = RequestParser()
        parser.append(pipeline)
        var arrived = pipeline.count
        for _ in 0..<10_000 {
            #expect(try parser.next())
            parser.append(Array(pipeline[..<14]))
            arrived += 14
        }
        #expect(parser.work.bytesMoved < 3 * arrived)
        #expect(parser.capacity < 3 * pipeline.count)
    }

    @Test func memoryForManyArgumentsIsProportionalToTheirNumber() throws {
        var parser = RequestParser()
        let count = 100_000
        parser.append(Array("*\(count)\r\n".utf8))
        for _ in 0..<count / 100 {
            parser.append(Array(repeatElement(Array("$0\r\n\r\n".utf8), count: 100).joined()))
            _ = try parser.next()
        }
        #expect(parser.argumentCount == count)
        #expect(parser.argument(count - 1).isEmpty)
        #expect(parser.capacity < count * (6 + 8) * 2 + 1_000)
    }

    @Test func limitsOutOfRangeAreClamped() {
        let low = RESPLimits(
            inlineBytesMax: .min, argumentsMax: -1, bulkBytesMax: -1, headerBytesMax: 0, requestBytesMax: .min,
            elementsMax: 0, depthMax: -5)
        #expect(
            low
                == RESPLimits(
                    inlineBytesMax: 1, argumentsMax: 1, bulkBytesMax: 0, headerBytesMax: 1, requestBytesMax: 1,
                    elementsMax: 1, depthMax: 1))
        let high = RESPLimits(
            inlineBytesMax: .max, argumentsMax: .max, bulkBytesMax: .max, headerBytesMax: .max, requestBytesMax: .max,
            elementsMax: .max, depthMax: .max)
        #expect(high.bulkBytesMax == 4_000_000_000)
        #expect(high.requestBytesMax == 4_000_000_000)
        let promise = "*2\r\n$4\r\nPING\r\n$3999999999\r\n"
        #expect(parse([Array(promise.utf8)], limits: high).error == ProtocolError("too big request"))
        #expect(parse([Array("*1073741824\r\n".utf8)], limits: high) == RequestOutcome())
    }
}
