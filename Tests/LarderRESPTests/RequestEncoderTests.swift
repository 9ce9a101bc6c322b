// Requests as they leave a client.

import Testing

@testable import LarderRESP

@Suite struct RequestEncoderTests {
    @Test func commandsBecomeArraysOfBulkStrings() {
        var bytes = Array("before".utf8)
        RequestEncoder.encode(["SET", "", "a\r\nb"], into: &bytes)
        RequestEncoder.encode([[0xFF, 0x00]], into: &bytes)
        let expected =
            Array("before*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\r\nb\r\n*1\r\n$2\r\n".utf8) + [0xFF, 0x00, 13, 10]
        #expect(bytes == expected)
    }

    @Test func theBufferOfAPipelineGrowsByDoubling() {
        var bytes: [UInt8] = []
        var allocations = 0
        var capacity = bytes.capacity
        for index in 0..<20_000 {
            RequestEncoder.encode(["GET", "key \(index)"], into: &bytes)
            if bytes.capacity != capacity { allocations += 1 }
            capacity = bytes.capacity
        }
        #expect(allocations < 30)
    }
}
