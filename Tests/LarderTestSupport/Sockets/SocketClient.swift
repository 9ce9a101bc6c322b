import LarderPlatform

/// A blocking client of a Unix-domain socket that returns raw replies.
///
/// Single owner: only one thread at a time may use it.
package final class SocketClient {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
        package init(description: String) { self.description = description }
    }

    package let descriptor: Int32
    private var received: [UInt8] = []
    /// The part of `received` before this offset has been returned.
    private var taken = 0
    private var isClosed = false

    /// How long a test waits for a reply before it fails, in seconds. Not reached in a successful run.
    private static let patienceSeconds = 60

    package init(_ path: String) throws {
        do throws(FileError) {
            descriptor = try UnixSocket.connected(to: path)
        } catch {
            throw Failure(description: error.description)
        }
        UnixSocket.limit(descriptor, milliseconds: Self.patienceSeconds * 1000)
    }

    /// Connects to a port of 127.0.0.1.
    package init(port: Int) throws {
        do {
            descriptor = try TCPSocket.connected(port: port, milliseconds: Self.patienceSeconds * 1000)
        } catch {
            throw Failure(description: "connect to 127.0.0.1:\(port): \(error)")
        }
    }

    /// Takes over a connected socket.
    package init(descriptor: Int32) {
        self.descriptor = descriptor
        UnixSocket.limit(descriptor, milliseconds: Self.patienceSeconds * 1000)
    }

    deinit { close() }

    static func failure(_ what: String, _ path: String) -> Failure {
        Failure(description: "\(what) \(path): \(String(cString: strerror(errno)))")
    }

    package func close() {
        guard !isClosed else { return }
        isClosed = true
        systemClose(descriptor)
    }

    // MARK: Sending

    /// Sends all of `bytes`.
    package func send(_ bytes: [UInt8]) throws {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                systemSend(descriptor, $0.baseAddress.map { $0 + done }, bytes.count - done, noSignal)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Self.failure("send", "") }
            done += count
        }
    }

    /// Sends as much as the socket accepts now.
    /// - Returns: the number of bytes sent.
    package func sendWithoutWaiting(_ bytes: ArraySlice<UInt8>) -> Int {
        max(
            0,
            bytes.withUnsafeBytes { systemSend(descriptor, $0.baseAddress, $0.count, noSignal | Int32(MSG_DONTWAIT)) })
    }

    package func send(_ words: [String]) throws { try send(encodeRequest(words)) }

    /// Half-closes the connection: the server sees the end of the stream, and can still reply.
    package func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    // MARK: Receiving

    /// Returns the next raw reply. Throws if the server closes the connection before the reply is complete.
    package func receive() throws -> [UInt8] {
        while true {
            if let length = RawReply.length(received, from: taken) {
                defer { taken += length }
                return Array(received[taken..<(taken + length)])
            }
            guard try receiveMore() else {
                let rest = String(decoding: received[taken...].prefix(200), as: UTF8.self)
                throw Failure(description: "the server closed the connection after '\(rest)'")
            }
        }
    }

    package func receive(_ count: Int) throws -> [[UInt8]] {
        try (0..<count).map { _ in try receive() }
    }

    /// Returns everything until the server closes the connection.
    package func receiveToEnd() throws -> [UInt8] {
        while try receiveMore() {}
        defer { taken = received.count }
        return Array(received[taken...])
    }

    /// Receives more bytes.
    /// - Returns: false at the end of the stream.
    private func receiveMore() throws -> Bool {
        received.removeFirst(taken)
        taken = 0
        // Use large chunks: the tests move a hundred megabytes here, and unoptimized builds are slow with single bytes.
        let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 1)
        defer { chunk.deallocate() }
        let count = recv(descriptor, chunk.baseAddress, chunk.count, 0)
        if count < 0, errno == EINTR { return true }
        // If a server closes a connection with unread requests, the system resets the connection.
        if count < 0, errno == ECONNRESET { return false }
        guard count >= 0 else { throw Self.failure("receive", "") }
        received.append(contentsOf: UnsafeRawBufferPointer(rebasing: chunk[..<count]))
        return count > 0
    }

    /// Sends a command and returns its reply.
    package func call(_ words: [String]) throws -> [UInt8] { try call(encodeRequest(words)) }

    /// Sends an encoded request and returns its reply.
    package func call(_ request: [UInt8]) throws -> [UInt8] {
        try send(request)
        return try receive()
    }

    /// Like ``call(_:)-([String])``, for a line whose words contain no spaces. Returns the reply as text.
    package func call(_ line: String) throws -> String {
        String(decoding: try call(line.split(separator: " ").map(String.init)), as: UTF8.self)
    }
}

extension TCPSocket {
    /// Returns a blocking socket that is connected to a port of 127.0.0.1, which the caller must close.
    /// - Parameter milliseconds: the time limit for connecting, and for each later call that sends or receives.
    static func connected(port: Int, milliseconds: Int) throws -> Int32 {
        var number = EINVAL
        guard let address = numericAddresses(host: "127.0.0.1", port: UInt16(port))?.first,
            let descriptor = start(address, &number)
        else { throw SocketClient.Failure(description: SystemErrorText.of(number)) }
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        number = poll(&entry, 1, Int32(milliseconds)) > 0 ? failure(of: descriptor) : ETIMEDOUT
        guard number == 0 else {
            close(descriptor)
            throw SocketClient.Failure(description: SystemErrorText.of(number))
        }
        _ = fcntl(descriptor, F_SETFL, 0)
        UnixSocket.limit(descriptor, milliseconds: milliseconds)
        return descriptor
    }
}

/// Calls send(2), which has the same name as methods.
func systemSend(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int, _ flags: Int32) -> Int {
    send(descriptor, start, count, flags)
}
