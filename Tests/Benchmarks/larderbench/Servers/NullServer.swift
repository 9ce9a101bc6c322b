import CLarderUV

/// The lower bound for every server: libuv, one loop, and no parsing. Each connection first sends the length of its
/// requests and of the reply. After that, the server counts bytes and sends constant replies.
///
/// Runs as a separate process: `larderbench --null-server SOCKET`. Single-threaded.
final class NullServer {
    static let greetingBytes = 24
    private static let inputBytes = 65_536

    private let loop: UnsafeMutablePointer<uv_loop_t>
    private let listener: UnsafeMutablePointer<uv_pipe_t>
    fileprivate let input = UnsafeMutableRawBufferPointer.allocate(byteCount: inputBytes, alignment: 16)
    private var replies: [Int: Replies] = [:]

    /// The same reply many times, at least 64 KiB. It is allocated until the server is released.
    final class Replies {
        let byteCount: Int
        /// The length of `bytes`, a multiple of `byteCount`.
        let totalByteCount: Int
        let bytes: UnsafeMutablePointer<CChar>

        init(valueBytes: Int?) {
            let one =
                valueBytes.map { Array("$\($0)\r\n".utf8) + [UInt8](repeating: 0x78, count: $0) + [0x0D, 0x0A] }
                ?? Array("+OK\r\n".utf8)
            byteCount = one.count
            totalByteCount = one.count * (65_536 / one.count + 2)
            bytes = .allocate(capacity: totalByteCount)
            for index in 0..<totalByteCount { bytes[index] = CChar(bitPattern: one[index % one.count]) }
        }
    }

    /// A client's first message: the length of each request, and that of the value in a reply; nil for the reply `+OK`.
    static func greeting(requestBytes: Int, valueBytes: Int?) -> [UInt8] {
        func field(_ number: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, 8 - digits.count)) + digits
        }
        return Array("NULL \(field(requestBytes)) \(valueBytes.map(field) ?? "------OK") \n".utf8)
    }

    /// Serves until a signal terminates the process.
    /// - Returns: an exit code if it cannot serve.
    static func serve(_ path: String) -> Int32 {
        guard let server = NullServer(path) else { return 1 }
        uv_run(server.loop, UV_RUN_DEFAULT)
        withExtendedLifetime(server) {}
        return 1
    }

    private init?(_ path: String) {
        loop = .allocate(capacity: 1)
        loop.initialize(to: uv_loop_t())
        listener = .allocate(capacity: 1)
        listener.initialize(to: uv_pipe_t())
        guard uv_loop_init(loop) == 0, uv_pipe_init(loop, listener, 0) == 0, uv_pipe_bind(listener, path) == 0 else {
            return nil
        }
        listener.withMemoryRebound(to: uv_handle_t.self, capacity: 1) {
            uv_handle_set_data($0, Unmanaged.passUnretained(self).toOpaque())
        }
        let status = listener.withMemoryRebound(to: uv_stream_t.self, capacity: 1) {
            uv_listen($0, 512) { stream, status in
                guard status == 0, let data = stream.flatMap(NullServer.data) else { return }
                Unmanaged<NullServer>.fromOpaque(data).takeUnretainedValue().accept()
            }
        }
        guard status == 0 else { return nil }
    }

    fileprivate static func data(of stream: UnsafeMutablePointer<uv_stream_t>) -> UnsafeMutableRawPointer? {
        stream.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { uv_handle_get_data($0) }
    }

    private func accept() {
        let peer = NullPeer(self, loop)
        listener.withMemoryRebound(to: uv_stream_t.self, capacity: 1) { peer.begin($0) }
    }

    fileprivate func replies(valueBytes: Int?) -> Replies {
        if let known = replies[valueBytes ?? -1] { return known }
        let new = Replies(valueBytes: valueBytes)
        replies[valueBytes ?? -1] = new
        return new
    }
}

/// One connection to the null server. Retains itself until it is closed.
private final class NullPeer {
    private unowned(unsafe) let server: NullServer
    private let pipe: UnsafeMutablePointer<uv_pipe_t>
    private var greeting: [UInt8] = []
    private var replies: NullServer.Replies?
    private var requestBytes = 1
    /// The number of bytes of an incomplete request.
    private var partial = 0

    init(_ server: NullServer, _ loop: UnsafeMutablePointer<uv_loop_t>) {
        self.server = server
        pipe = .allocate(capacity: 1)
        pipe.initialize(to: uv_pipe_t())
        uv_pipe_init(loop, pipe, 0)
    }

    deinit { pipe.deallocate() }

    func begin(_ listener: UnsafeMutablePointer<uv_stream_t>) {
        let own = Unmanaged.passRetained(self).toOpaque()
        pipe.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { uv_handle_set_data($0, own) }
        pipe.withMemoryRebound(to: uv_stream_t.self, capacity: 1) { stream in
            guard uv_accept(listener, stream) == 0 else { return end() }
            uv_read_start(
                stream,
                { handle, _, buffer in
                    guard let handle, let data = uv_handle_get_data(handle), let buffer else { return }
                    let input = Unmanaged<NullPeer>.fromOpaque(data).takeUnretainedValue().server.input
                    buffer.pointee = uv_buf_init(
                        input.baseAddress?.assumingMemoryBound(to: CChar.self), UInt32(input.count))
                },
                { stream, count, _ in
                    guard count != 0, let data = stream.flatMap(NullServer.data) else { return }
                    Unmanaged<NullPeer>.fromOpaque(data).takeUnretainedValue().didRead(count)
                })
        }
    }

    private func end() {
        pipe.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { handle in
            guard uv_is_closing(handle) == 0 else { return }
            uv_close(handle) { handle in
                guard let handle, let data = uv_handle_get_data(handle) else { return }
                Unmanaged<NullPeer>.fromOpaque(data).release()
            }
        }
    }

    private func didRead(_ count: Int) {
        guard count > 0 else { return end() }
        var rest = count
        if replies == nil {
            let wanted = min(NullServer.greetingBytes - greeting.count, count)
            greeting += server.input[..<wanted]
            rest -= wanted
            guard greeting.count == NullServer.greetingBytes else { return }
            let words = String(decoding: greeting, as: UTF8.self).split(separator: " ")
            guard words.count >= 3, words[0] == "NULL", let bytes = Int(words[1]), bytes > 0 else { return end() }
            requestBytes = bytes
            replies = server.replies(valueBytes: Int(words[2]).map { min(max($0, 0), Values.bytesMax) })
        }
        partial += rest
        let (requests, left) = partial.quotientAndRemainder(dividingBy: requestBytes)
        partial = left
        if requests > 0 { answer(requests) }
    }

    private func answer(_ count: Int) {
        guard let replies else { return }
        var rest = count * replies.byteCount
        pipe.withMemoryRebound(to: uv_stream_t.self, capacity: 1) { stream in
            while rest > 0 {
                // All replies are equal, so start at any offset with the right remainder.
                let start = (replies.byteCount - rest % replies.byteCount) % replies.byteCount
                let part = min(rest, replies.totalByteCount - start)
                var buffer = uv_buf_init(replies.bytes + start, UInt32(part))
                let written = Int(uv_try_write(stream, &buffer, 1))
                if written > 0 {
                    rest -= written
                    continue
                }
                guard written == Int(UV_EAGAIN.rawValue) else { return end() }
                return queue(stream, replies, from: start, rest)
            }
        }
    }

    /// Lets libuv write the remaining bytes when the socket accepts more. The bytes are valid until the server is
    /// released.
    private func queue(
        _ stream: UnsafeMutablePointer<uv_stream_t>, _ replies: NullServer.Replies, from start: Int, _ count: Int
    ) {
        var offset = start
        var left = count
        while left > 0 {
            let size = min(left, replies.totalByteCount - offset)
            let request = UnsafeMutablePointer<uv_write_t>.allocate(capacity: 1)
            request.initialize(to: uv_write_t())
            var buffer = uv_buf_init(replies.bytes + offset, UInt32(size))
            let status = uv_write(request, stream, &buffer, 1) { request, _ in request?.deallocate() }
            guard status == 0 else {
                request.deallocate()
                return end()
            }
            left -= size
            offset = 0
        }
    }
}
