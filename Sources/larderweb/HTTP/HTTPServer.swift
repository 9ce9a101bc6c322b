import CLarderMicroHTTPD
import LarderPlatform

/// A thin wrapper around libmicrohttpd. Reads requests from a socket, enforces limits of size and time, and sends the
/// responses that a closure returns.
///
/// `@unchecked Sendable`: constant after the start, except for `daemon` and `thread`, which are used only by the thread
/// that starts and stops the server.
final class HTTPServer: @unchecked Sendable {
    /// The maximum number of connections, and the limits of each connection.
    struct Limits: Sendable {
        var connections: UInt32 = 64
        var idleSeconds: UInt32 = 30
        /// The size of a request's head, including its first line.
        var headBytes = 16_384
        var bodyBytes = 65_536
        /// A body without a stated length may exceed its limit by this many bytes, which are read and dropped: a
        /// response can be sent only after the whole body was read.
        var droppedBytes = 1 << 20
        var requestMilliseconds: Int64 = 30_000
        var answerMilliseconds: Int64 = 60_000
    }

    /// The memory for a head, as a multiple of its limit. A head that is longer than the limit is still read, so that
    /// it gets a response.
    private static let memoryShare = 8

    private let limits: Limits
    private let respond: @Sendable (HTTPRequest) -> HTTPResponse
    private let watch: ConnectionWatch
    private var daemon: OpaquePointer?
    private var thread: WorkThread?

    /// The number of connections that are accepted above the limit, until ``ConnectionWatch`` has closed as many.
    static let spareConnections: UInt32 = 4

    /// - Parameters:
    ///   - reportFull: called at most once a minute if there are too many connections.
    ///   - respond: called on the connection's thread; may block.
    init(
        limits: Limits = Limits(), reportFull: @escaping @Sendable () -> Void = {},
        respond: @escaping @Sendable (HTTPRequest) -> HTTPResponse
    ) {
        self.limits = limits
        self.respond = respond
        watch = ConnectionWatch(
            most: Int(limits.connections), requestMilliseconds: limits.requestMilliseconds,
            answerMilliseconds: limits.answerMilliseconds, reportFull: reportFull)
    }

    /// Serves on a duplicate of a listening socket.
    /// - Returns: false if the system refuses.
    func start(_ listening: Int32) -> Bool {
        let copy = fcntl(listening, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { return false }
        var most = larder_http_limits(
            connections: limits.connections + Self.spareConnections, idle_seconds: limits.idleSeconds,
            memory_bytes: limits.headBytes * Self.memoryShare, stack_bytes: 1 << 20)
        daemon = larder_http_start(
            copy, &most, Self.handler, Self.begun, Self.completed, Self.connectionChanged,
            Unmanaged.passUnretained(self).toOpaque())
        guard daemon != nil else {
            close(copy)
            return false
        }
        thread = WorkThread(name: "larderweb-watch") { [watch] in watch.run() }
        return true
    }

    /// Closes all connections. Responses in progress may be truncated.
    func stop() {
        if let daemon { MHD_stop_daemon(daemon) }
        daemon = nil
        watch.end()
        thread?.join()
        thread = nil
    }

    // MARK: Callbacks of libmicrohttpd, on the connections' threads

    /// The state of a request that is being received. Confined to its connection's thread.
    private final class Exchange {
        let target: [UInt8]
        let descriptor: Int32
        var headers: [HTTPRequest.Field] = []
        var body: [UInt8] = []
        var hasHead = false
        /// The number of body bytes received beyond the limit.
        var droppedBytes = 0

        init(target: [UInt8], descriptor: Int32) {
            self.target = target
            self.descriptor = descriptor
        }
    }

    private static func server(_ context: UnsafeMutableRawPointer?) -> HTTPServer? {
        context.map { Unmanaged<HTTPServer>.fromOpaque($0).takeUnretainedValue() }
    }

    private static let begun:
        @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?) -> UnsafeMutableRawPointer? = {
            _, target, connection in
            guard let target else { return nil }
            let exchange = Exchange(
                target: Array(UnsafeRawBufferPointer(start: target, count: strlen(target))),
                descriptor: larder_http_descriptor(connection))
            return Unmanaged.passRetained(exchange).toOpaque()
        }

    private static let completed: MHD_RequestCompletedCallback = { context, _, state, _ in
        guard let object = state?.pointee else { return }
        let exchange = Unmanaged<Exchange>.fromOpaque(object).takeRetainedValue()
        state?.pointee = nil
        server(context)?.watch.awaitRequest(exchange.descriptor)
    }

    private static let connectionChanged: MHD_NotifyConnectionCallback = { context, connection, _, change in
        let descriptor = larder_http_descriptor(connection)
        guard descriptor >= 0, let server = server(context) else { return }
        if change == .CONNECTION_NOTIFY_STARTED {
            server.watch.begin(descriptor)
        } else {
            server.watch.forget(descriptor)
        }
    }

    private static let handler: MHD_AccessHandlerCallback = { context, connection, _, method, _, part, count, state in
        guard let server = server(context), let connection, let method, let count,
            let object = state?.pointee
        else { return MHD_Result.NO }
        let exchange = Unmanaged<Exchange>.fromOpaque(object).takeUnretainedValue()
        return server.take(exchange, connection, String(cString: method), part, count) ? MHD_Result.YES : MHD_Result.NO
    }

    /// Handles a chunk of a request; the first one is the head.
    /// - Returns: false to close the connection.
    private func take(
        _ exchange: Exchange, _ connection: OpaquePointer, _ method: String, _ part: UnsafePointer<CChar>?,
        _ count: UnsafeMutablePointer<Int>
    ) -> Bool {
        if !exchange.hasHead {
            exchange.hasHead = true
            exchange.headers = Self.fields(connection, .HEADER_KIND).map { ($0.name.lowercased(), $0.value) }
            if let refusal = RequestFraming.refusal(exchange.target, exchange.headers, limits) {
                return send(refusal, connection, exchange.descriptor)
            }
            return true
        }
        if count.pointee > 0 {
            defer { count.pointee = 0 }
            guard exchange.droppedBytes == 0, exchange.body.count + count.pointee <= limits.bodyBytes else {
                // A response is possible only after the last chunk, so read and drop this chunk.
                exchange.droppedBytes += count.pointee
                return exchange.droppedBytes <= limits.droppedBytes
            }
            exchange.body += UnsafeRawBufferPointer(start: part, count: count.pointee)
            return true
        }
        if exchange.droppedBytes > 0 { return send(RequestFraming.tooLong(limits), connection, exchange.descriptor) }
        watch.work(on: exchange.descriptor)
        let path = exchange.target.prefix { $0 != UInt8(ascii: "?") }
        guard path.first == UInt8(ascii: "/"), let path = String(validating: path, as: UTF8.self) else {
            return send(.problem(400, "the path is malformed"), connection, exchange.descriptor)
        }
        let request = HTTPRequest(
            method: method, path: path, query: Self.fields(connection, .GET_ARGUMENT_KIND), headers: exchange.headers,
            body: exchange.body)
        return send(respond(request), connection, exchange.descriptor)
    }

    /// Returns the headers or the parameters of a request.
    private static func fields(_ connection: OpaquePointer, _ kind: MHD_ValueKind) -> [HTTPRequest.Field] {
        var fields: [HTTPRequest.Field] = []
        withUnsafeMutablePointer(to: &fields) { pointer in
            _ = MHD_get_connection_values_n(
                connection, kind,
                { context, _, name, nameCount, value, count in
                    let list = context?.assumingMemoryBound(to: [HTTPRequest.Field].self)
                    let name = String(decoding: UnsafeRawBufferPointer(start: name, count: nameCount), as: UTF8.self)
                    list?.pointee.append((name, Array(UnsafeRawBufferPointer(start: value, count: count))))
                    return MHD_Result.YES
                }, pointer)
        }
        return fields
    }

    private func send(_ answer: HTTPResponse, _ connection: OpaquePointer, _ descriptor: Int32) -> Bool {
        let response = answer.body.withUnsafeBytes {
            // `mutating` is safe: libmicrohttpd only copies the bytes.
            MHD_create_response_from_buffer(
                $0.count, UnsafeMutableRawPointer(mutating: $0.baseAddress), .RESPMEM_MUST_COPY)
        }
        guard let response else { return false }
        defer { MHD_destroy_response(response) }
        for (name, value) in HTTPResponse.common + answer.headers { MHD_add_response_header(response, name, value) }
        watch.awaitAnswer(descriptor)
        return MHD_queue_response(connection, answer.status, response) == MHD_Result.YES
    }
}
