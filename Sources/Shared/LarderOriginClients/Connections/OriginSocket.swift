import LarderPlatform
import LarderWire

/// Receives the events of a socket. Called on the loop's thread.
protocol OriginSocketUser: AnyObject {
    func socketIsConnected()
    /// There may be bytes to receive.
    func socketIsReadable()
    /// The socket was closed because of an error, or by the peer. Called at most once, and not after
    /// ``OriginSocket/close()``.
    func socketEnded(_ reason: String)
}

/// A non-blocking stream socket, with or without TLS. The loop retains it until it is closed.
///
/// `@unchecked Sendable`: used on the loop's thread only, apart from references to it.
final class OriginSocket: LoopMember, @unchecked Sendable {
    private let loop: SocketLoop
    private let endpoint: OriginEndpoint
    private weak var user: (any OriginSocketUser)?
    private var socket: StreamSocket?
    private var isConnected = false
    private var isClosed = false
    private let tls: TLSSession?
    /// The number of reads from the socket since the loop last reported it as readable.
    private var receivedInTurn = 0
    /// The addresses of the host to which no connection was tried yet.
    private var addresses: [SocketAddress] = []
    private var lastFailure = "the host has no address"

    /// The bytes being sent. The system has accepted the first `sent` of them. `output` is sent afterwards.
    private var sending: [UInt8] = []
    private var sent = 0
    private var output: [UInt8] = []
    private var isFlushListed = false
    /// Whether the system did not accept all bytes.
    private var isFull = false

    /// The maximum number of reads before the loop serves other sockets.
    private static let receivesPerTurn = 16
    private static let chunkBytes = 65_536

    /// - Parameter tls: the TLS session; nil for a connection without TLS.
    init(_ loop: SocketLoop, _ endpoint: OriginEndpoint, tls: TLSSession?, user: any OriginSocketUser) {
        self.loop = loop
        self.endpoint = endpoint
        self.tls = tls
        self.user = user
    }

    // MARK: Connecting

    /// Starts to connect. Call it once.
    func open() {
        loop.add(self)
        switch endpoint {
        case .unix(let path): began(StreamConnecting.start(path: path))
        case .tcp(let host, let port):
            if let numeric = StreamConnecting.numericAddresses(host: host, port: port) {
                addresses = numeric
                return tryNext()
            }
            WorkThread(name: "larder-lookup") { [self, loop] in
                let result = StreamConnecting.resolve(host: host, port: port)
                loop.send { [self] in
                    guard !isClosed else { return }
                    switch result {
                    case .success(let found):
                        addresses = found
                        tryNext()
                    case .failure(let failure): failToConnect(failure.description)
                    }
                }
            }.detach()
        }
    }

    private func tryNext() {
        guard !addresses.isEmpty else { return failToConnect(lastFailure) }
        began(StreamConnecting.start(addresses.removeFirst()))
    }

    private func began(_ result: Result<StreamConnecting.Started, SystemCallFailure>) {
        switch result {
        case .failure(let failure):
            lastFailure = failure.description
            // Try the next address later: the attempt may close the socket, and the caller of ``open()`` does not
            // expect that before the call returns.
            loop.beforeWaiting { [weak self] in if let self, !self.isClosed { self.tryNext() } }
        case .success(let started):
            socket = StreamSocket(adopting: started.descriptor)
            guard started.isConnected else { return }
            loop.beforeWaiting { [weak self] in if let self, !self.isClosed { self.connected() } }
        }
    }

    /// Closes the socket with an error. If this process may use only Unix-domain sockets, the message says so.
    private func failToConnect(_ reason: String) {
        guard case .tcp = endpoint, TCPSocket.isForbidden else { return fail(reason) }
        fail("\(reason): larderd's service allows only Unix-domain sockets, see docs/Operating.md#origins-over-tcp")
    }

    private func connected() {
        isConnected = true
        if tls == nil { user?.socketIsConnected() } else { shakeHands() }
    }

    private func shakeHands() {
        guard let tls, !tls.isEstablished else { return }
        let failure = tls.shakeHands()
        // Send the output even after a failure: it may contain an alert that reports the reason to the peer.
        flush()
        if let failure { return fail(failure) }
        if tls.isEstablished, !isClosed { user?.socketIsConnected() }
    }

    private func connectingEnded(_ socket: StreamSocket) {
        let number = StreamConnecting.failure(of: socket.descriptor)
        guard number != 0 else { return connected() }
        lastFailure = SystemCallFailure(number: number).description
        self.socket = nil
        tryNext()
    }

    // MARK: Events

    func prepare(now: Int64) -> LoopInterest {
        if isClosed { return LoopInterest(isFinished: true) }
        return LoopInterest(socket: socket, wantsToSend: isFull || !isConnected)
    }

    func act(on socket: StreamSocket, mayRead: Bool) {
        guard socket === self.socket else { return }
        guard isConnected else { return connectingEnded(socket) }
        receivedInTurn = 0
        if mayRead { readable() }
        if isFull { flush() }
    }

    private func readable() {
        if let tls, !tls.isEstablished {
            guard receiveEncrypted(tls) else { return }
            shakeHands()
            guard !isClosed, tls.isEstablished else { return }
        }
        user?.socketIsReadable()
    }

    private func fail(_ reason: String) {
        guard !isClosed else { return }
        let user = user
        close()
        user?.socketEnded(reason)
    }

    /// Closes the socket. The user is not called any more. May be called repeatedly.
    func close() {
        isClosed = true
        socket = nil
        output = []
        sending = []
        sent = 0
    }

    // MARK: Bytes

    /// Receives bytes into `room`. Call it repeatedly until it returns 0.
    /// - Returns: the number of bytes; 0 if none are available now, or if the socket was closed. If it was closed, the
    ///   user has been notified.
    func receive(_ room: UnsafeMutableRawBufferPointer) -> Int {
        guard let tls else { return receiveFromSystem(room) }
        while !isClosed {
            switch tls.read(room) {
            case .bytes(let count): return count
            case .nothingNow: if !receiveEncrypted(tls) { return 0 }
            case .ended(let reason): fail(reason)
            }
        }
        return 0
    }

    /// Passes received bytes to the TLS session.
    /// - Returns: whether any bytes were received.
    private func receiveEncrypted(_ tls: TLSSession) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: Self.chunkBytes, alignment: 16) { chunk in
            let count = receiveFromSystem(chunk)
            if count > 0 { tls.receive(UnsafeRawBufferPointer(rebasing: chunk[..<count])) }
            return count > 0
        }
    }

    private func receiveFromSystem(_ room: UnsafeMutableRawBufferPointer) -> Int {
        guard let socket, receivedInTurn < Self.receivesPerTurn else { return 0 }
        receivedInTurn += 1
        switch StreamConnecting.receive(socket.descriptor, room) {
        case .bytes(let count): return count
        case .nothingNow: return 0
        case .end: fail("the server closed the connection")
        case .failed(let failure): fail(failure.description)
        }
        return 0
    }

    /// Appends bytes to the output. They are sent before the loop waits for events.
    func write(_ body: (inout [UInt8]) -> Void) {
        guard !isClosed else { return }
        body(&output)
        guard !isFlushListed else { return }
        isFlushListed = true
        loop.beforeWaiting { [weak self] in
            guard let self else { return }
            self.isFlushListed = false
            self.flush()
        }
    }

    /// The number of bytes that the system has not accepted yet.
    var unsentBytes: Int { sending.count - sent + output.count }

    /// Moves the output into `sending`. Encrypts it if TLS is used.
    /// - Returns: whether there are bytes to send.
    private func takeOutput() -> Bool {
        guard let tls else {
            swap(&sending, &output)
            return !sending.isEmpty
        }
        if tls.isEstablished, !output.isEmpty {
            let isDone = tls.write(output)
            output.removeAll(keepingCapacity: output.capacity <= 1 << 20)
            guard isDone else {
                fail("TLS: nothing more can be sent")
                return false
            }
        }
        sending = tls.takeOutput()
        return !sending.isEmpty
    }

    private func flush() {
        guard let socket, isConnected else { return }
        isFull = false
        while true {
            if sent == sending.count {
                sent = 0
                sending.removeAll(keepingCapacity: sending.capacity <= 1 << 20)
                guard takeOutput() else { break }
            }
            let result = sending.withUnsafeBytes {
                StreamConnecting.send(socket.descriptor, UnsafeRawBufferPointer(rebasing: $0[sent...]))
            }
            switch result {
            case .failure(let failure): return fail(failure.description)
            case .success(0): return isFull = true
            case .success(let count): sent += count
            }
        }
    }
}
