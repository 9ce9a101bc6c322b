import CLarderUV
import LarderPlatform

/// One connection of the load generator: the times of its requests, and its output and input buffers.
///
/// Used only by the generator's loop. The generator outlives the connection.
final class LoadConnection {
    /// The number of unanswered requests at which a paced connection fails.
    private static let unansweredMax = 65_536
    private static let inputBytes = 512 << 10

    private unowned(unsafe) let generator: LoadGenerator
    private let part: Int
    private let descriptor: Int32
    private let poll: UnsafeMutablePointer<uv_poll_t>
    private let isPollOpen: Bool
    private let input: UnsafeMutableRawBufferPointer
    private var inputCount = 0
    private let output: UnsafeMutableRawBufferPointer
    private var outputStart = 0
    private var outputEnd = 0
    private var isWaitingToWrite = false
    /// The times of unanswered requests in nanoseconds: a ring buffer whose size is a power of two.
    private var sentAt: UnsafeMutableBufferPointer<UInt64>
    private var oldest = 0
    private(set) var unanswered = 0

    /// - Parameter part: the part of the generator that the connection uses.
    init(_ generator: LoadGenerator, part: Int, socket path: String) throws(BenchError) {
        self.generator = generator
        self.part = part
        descriptor = try BenchError.mapping { () throws(FileError) in try UnixSocket.connected(to: path) }
        let load = generator.load
        let most = load.pacePerSecond == nil ? load.pipeline : Self.unansweredMax
        sentAt = .allocate(capacity: 1 << (Int.bitWidth - (most - 1).leadingZeroBitCount))
        output = .allocate(
            byteCount: max(generator.requestBytesMax * load.pipeline, load.pacePerSecond == nil ? 0 : 1 << 20),
            alignment: 16)
        input = .allocate(byteCount: Self.inputBytes, alignment: 16)
        poll = .allocate(capacity: 1)
        poll.initialize(to: uv_poll_t())
        isPollOpen = uv_poll_init(generator.loop, poll, descriptor) == 0
        guard isPollOpen else { throw BenchError("uv_poll_init failed") }
        // `passUnretained` is safe: the generator keeps its connections until their handles are closed.
        poll.withMemoryRebound(to: uv_handle_t.self, capacity: 1) {
            uv_handle_set_data($0, Unmanaged.passUnretained(self).toOpaque())
        }
        watch(UV_READABLE.rawValue)
    }

    deinit {
        sentAt.deallocate()
        input.deallocate()
        output.deallocate()
        poll.deallocate()
        close(descriptor)
    }

    /// Removes the connection from the loop. Run the loop once more before the release: libuv still uses the handle.
    func end() {
        guard isPollOpen else { return }
        poll.withMemoryRebound(to: uv_handle_t.self, capacity: 1) {
            if uv_is_closing($0) == 0 { uv_close($0, nil) }
        }
    }

    // MARK: Sending

    /// Sends the next batch of requests.
    /// - Returns: false if the load has no more requests.
    func sendBatch(at now: UInt64) throws(BenchError) -> Bool {
        let count = generator.takeRequests(at: now)
        for _ in 0..<count { try append(at: now) }
        try flush()
        return count > 0
    }

    /// Sends one request that is due.
    func sendOne(at now: UInt64) throws(BenchError) {
        try append(at: now)
        try flush()
    }

    private func append(at now: UInt64) throws(BenchError) {
        if outputEnd + generator.requestBytesMax > output.count {
            // Only paced connections get here: without a pace, a batch always fits.
            guard outputStart > 0 else { throw BenchError("the server no longer reads requests") }
            output.baseAddress?.copyMemory(
                from: output.baseAddress.unsafelyUnwrapped + outputStart, byteCount: outputEnd - outputStart)
            outputEnd -= outputStart
            outputStart = 0
            guard outputEnd + generator.requestBytesMax <= output.count else {
                throw BenchError("the server no longer reads requests")
            }
        }
        guard unanswered < sentAt.count else { throw BenchError("\(unanswered) requests of a client are unanswered") }
        // The request fits into the buffer: this was checked above.
        outputEnd += generator.writeRequest(of: part, to: output.baseAddress.unsafelyUnwrapped + outputEnd)
        sentAt[(oldest + unanswered) & (sentAt.count - 1)] = now
        unanswered += 1
    }

    private func flush() throws(BenchError) {
        while outputStart < outputEnd {
            let written = unistdWrite(descriptor, UnsafeRawBufferPointer(rebasing: output[outputStart..<outputEnd]))
            if written > 0 {
                outputStart += written
            } else if errno == EAGAIN || errno == EWOULDBLOCK {
                break
            } else if errno != EINTR {
                throw .system("write to the server")
            }
        }
        let mustWait = outputStart < outputEnd
        if !mustWait {
            outputStart = 0
            outputEnd = 0
        }
        if mustWait != isWaitingToWrite {
            isWaitingToWrite = mustWait
            watch(UV_READABLE.rawValue | (mustWait ? UV_WRITABLE.rawValue : 0))
        }
    }

    /// Sends bytes before the first request. They must fit into the socket's buffer.
    func send(_ bytes: [UInt8]) throws(BenchError) {
        guard bytes.withUnsafeBytes({ unistdWrite(descriptor, $0) }) == bytes.count else {
            throw .system("write to the server")
        }
    }

    // MARK: Events

    private func watch(_ events: UInt32) {
        uv_poll_start(poll, Int32(events)) { handle, status, events in
            guard let handle else { return }
            let data = handle.withMemoryRebound(to: uv_handle_t.self, capacity: 1) { uv_handle_get_data($0) }
            guard let data else { return }
            Unmanaged<LoadConnection>.fromOpaque(data).takeUnretainedValue().ready(status, UInt32(events))
        }
    }

    private func ready(_ status: Int32, _ events: UInt32) {
        do throws(BenchError) {
            guard status == 0 else { throw BenchError("poll: \(String(cString: uv_strerror(status)))") }
            if events & UV_WRITABLE.rawValue != 0 { try flush() }
            if events & UV_READABLE.rawValue != 0 { try receive() }
        } catch {
            generator.fail(error)
        }
    }

    private func receive() throws(BenchError) {
        let room = UnsafeMutableRawBufferPointer(rebasing: input[inputCount...])
        let count = unistdRead(descriptor, room)
        guard count > 0 else {
            if count < 0, errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR { return }
            throw count == 0 ? BenchError("the server ended the connection") : .system("read from the server")
        }
        inputCount += count
        let now = Clocks.nanoseconds()
        var used = 0
        while used < inputCount,
            let reply = try generator.scanner.next(UnsafeRawBufferPointer(rebasing: input[used..<inputCount]))
        {
            guard unanswered > 0 else { throw BenchError("the server sent more answers than requests") }
            let bytes = UnsafeRawBufferPointer(rebasing: input[used..<used + reply.byteCount])
            generator.note(reply, bytes, nanoseconds: now &- sentAt[oldest])
            oldest = (oldest + 1) & (sentAt.count - 1)
            unanswered -= 1
            used += reply.byteCount
        }
        if used < inputCount, used > 0 {
            input.baseAddress?.copyMemory(
                from: input.baseAddress.unsafelyUnwrapped + used, byteCount: inputCount - used)
        }
        inputCount -= used
        guard unanswered == 0 else { return }
        if generator.load.pacePerSecond != nil { return generator.connectionRests() }
        if try !sendBatch(at: now) { generator.connectionRests() }
    }
}
