import RESP

/// One blocking connection to a server, for filling it and asking it. Not what is measured with.
final class SocketClient {
    private let descriptor: Int32
    private var parser = ReplyParser()

    init(path: String) throws(BenchError) {
        #if os(Linux)
            let kind = Int32(SOCK_STREAM.rawValue)
        #else
            let kind = SOCK_STREAM
        #endif
        descriptor = socket(AF_UNIX, kind, 0)
        guard descriptor >= 0 else { throw .system("socket") }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let room = MemoryLayout.size(ofValue: address.sun_path) - 1
        guard path.utf8.count <= room else {
            close(descriptor)
            throw BenchError("the path of the socket is too long: \(path); use a shorter --dir")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let status = withUnsafeBytes(of: &address) { bytes in
            connectSocket(descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
        guard status == 0 else {
            let error = BenchError.system("connect \(path)")
            close(descriptor)
            throw error
        }
    }

    deinit { close(descriptor) }

    func ask(_ words: [String]) throws(BenchError) -> RESPValue {
        var request: [UInt8] = []
        RequestEncoder.encode(words, into: &request)
        try send(request)
        return try reply()
    }

    /// Stores `count` entries under the keys that redis-benchmark uses.
    func fill(count: Int, valueBytes: Int) throws(BenchError) {
        let values = Values(bytes: valueBytes)
        let group = 500
        for start in stride(from: 0, to: count, by: group) {
            try Interruption.check()
            var request: [UInt8] = []
            let indices = start..<min(start + group, count)
            for index in indices {
                RequestEncoder.encode([Array("SET".utf8), Keys.bytes(index), values[index]], into: &request)
            }
            try send(request)
            for _ in indices {
                let answer = try reply()
                guard answer == .simpleString("OK") else { throw BenchError("SET was answered with \(answer)") }
            }
        }
    }

    /// Checks that the server has `count` entries: GETs that find nothing would be measured as something else.
    func checkCount(_ count: Int) throws(BenchError) {
        let answer = try ask(["DBSIZE"])
        guard answer == .integer(Int64(count)) else {
            throw BenchError("DBSIZE is \(answer) after \(count) keys were stored")
        }
    }

    private func send(_ bytes: [UInt8]) throws(BenchError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { unistdWrite(descriptor, $0) }
            guard count > 0 else { throw .system("write to the server") }
            rest = rest.dropFirst(count)
        }
    }

    private func reply() throws(BenchError) -> RESPValue {
        do {
            while true {
                if let value = try parser.next() { return value }
                let count = unistdRead(descriptor, parser.writableSpace(atLeast: 65_536))
                guard count > 0 else { throw BenchError("the server ended the connection") }
                parser.didWrite(count)
            }
        } catch let error as BenchError {
            throw error
        } catch {
            throw BenchError("the server's answer is not the protocol: \(error)")
        }
    }
}

/// `connect` of the C library.
private func connectSocket(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>?, _ length: socklen_t) -> Int32 {
    connect(descriptor, address, length)
}
