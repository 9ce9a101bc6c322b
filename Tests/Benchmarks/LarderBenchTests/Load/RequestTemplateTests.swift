import Testing

@testable import larderbench

@Suite struct RequestTemplateTests {
    private let values = Values(bytes: 5)

    private func text(_ template: RequestTemplate, key: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: template.bytes.count)
        bytes.withUnsafeMutableBytes { buffer in
            if let start = buffer.baseAddress { template.write(key: key, values: values, to: start) }
        }
        return bytes
    }

    @Test("requests in RESP are encoded") func respRequests() {
        #expect(text(.get(.resp), key: 42) == Array("*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000042\r\n".utf8))
        let value = values[7]
        #expect(
            text(.set(.resp, Load.Kind(valueBytes: 5)), key: 7)
                == Array("*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000007\r\n$5\r\n".utf8) + value + [13, 10])
        #expect(
            text(.set(.resp, Load.Kind(valueBytes: 5), words: ["PX", "1500"]), key: 7)
                == text(.set(.resp, Load.Kind(valueBytes: 5, lifetimeMilliseconds: 1500)), key: 7))
        #expect(
            text(.set(.resp, Load.Kind(valueBytes: 5, lifetimeMilliseconds: 1500)), key: 7)
                == Array("*5\r\n$3\r\nSET\r\n$16\r\nkey:000000000007\r\n$5\r\n".utf8) + value
                + Array("\r\n$2\r\nPX\r\n$4\r\n1500\r\n".utf8))
    }

    @Test("requests to memcached are encoded") func memcachedRequests() {
        #expect(text(.get(.memcached), key: 999_999_999_999) == Array("get key:999999999999\r\n".utf8))
        #expect(
            text(.set(.memcached, Load.Kind(valueBytes: 5)), key: 0)
                == Array("set key:000000000000 0 0 5\r\n".utf8) + values[0] + [13, 10])
        #expect(
            text(.set(.memcached, Load.Kind(valueBytes: 5, lifetimeMilliseconds: 1500)), key: 0)
                == Array("set key:000000000000 0 2 5\r\n".utf8) + values[0] + [13, 10])
    }

    @Test func keysHaveTheSameFormAsInRedisBenchmark() {
        #expect(Keys.text(123) == "key:000000000123")
        #expect(Keys.text(123).utf8.count == 16)
    }
}
