import CLarderMicroHTTPD
import LarderPlatform

/// A thin wrapper around libmicrohttpd. Reads requests from a socket, enforces limits of size and time, and sends the
/// responses that a closure returns.
///
/// Confined to one thread, except for the callbacks, which use only constants and ``ConnectionWatch``.
final class HTTPServer {
    /// The memory for a head, as a multiple of its limit. A head that is longer than the limit is still read, so that
    /// it gets a response.
    private static let memoryShare = 8

    private let limits: HTTPLimits
    private let respond: @Sendable (HTTPRequest) -> HTTPResponse
    private let watch: ConnectionWatch
    private var daemon: OpaquePointer?

    /// The number of connections that are accepted above the limit, until ``ConnectionWatch`` has closed as many.
    static let spareConnections: UInt32 = 4

    /// - Parameters:
    ///   - reportFull: called at most once a minute if there are too many connections.
    ///   - respond: called on the connection's thread; may block.
    init(
        limits: HTTPLimits = HTTPLimits(), reportFull: @escaping @Sendable () -> Void = {},
        respond: @escaping @Sendable (HTTPRequest) -> HTTPResponse
    ) {
        self.limits = limits
        self.respond = respond
        watch = ConnectionWatch(limits, reportFull: reportFull)
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
        if daemon == nil { close(copy) }
        return daemon != nil
    }

    /// Closes connections that are too slow. Must be called about once a second, and at least once per request timeout.
    func closeSlowConnections() { watch.closeSlow() }

    /// Closes all connections. Responses in progress may be truncated.
    func stop() {
        if let daemon { MHD_stop_daemon(daemon) }
        daemon = nil
    }

    // MARK: Callbacks of libmicrohttpd, on the connections' threads

    private static func server(_ context: UnsafeMutableRawPointer?) -> HTTPServer? {
        context.map { Unmanaged<HTTPServer>.fromOpaque($0).takeUnretainedValue() }
    }

    private static let begun:
        @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?) -> UnsafeMutableRawPointer? = {
            context, target, connection in
            guard let target, let server = server(context) else { return nil }
            let request = HTTPRequest(
                target: Array(UnsafeRawBufferPointer(start: target, count: strlen(target))),
                descriptor: larder_http_descriptor(connection))
            server.refuseParameters(request)
            return Unmanaged.passRetained(request).toOpaque()
        }

    private static let completed: MHD_RequestCompletedCallback = { context, _, state, _ in
        guard let object = state?.pointee else { return }
        let request = Unmanaged<HTTPRequest>.fromOpaque(object).takeRetainedValue()
        state?.pointee = nil
        server(context)?.watch.awaitRequest(request.descriptor)
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
        guard let server = server(context), let connection, let method, let count, let object = state?.pointee
        else { return MHD_Result.NO }
        let request = Unmanaged<HTTPRequest>.fromOpaque(object).takeUnretainedValue()
        let response = server.take(request, connection, String(cString: method), part, count)
        guard let response else { return request.isRefused ? MHD_Result.NO : MHD_Result.YES }
        return server.send(response, connection, request.descriptor)
    }

    /// Responds to a request with too many parameters, before libmicrohttpd parses them: if it has no memory for them,
    /// it closes the connection without a response.
    private func refuseParameters(_ request: HTTPRequest) {
        guard request.target.count(where: { $0 == UInt8(ascii: "&") }) > limits.parameters else { return }
        request.isRefused = true
        let response = HTTPResponse.closing(431, "the request has more than \(limits.parameters) parameters")
        let headers = (HTTPResponse.common + response.headers + [("Content-Length", "\(response.body.count)")])
            .map { "\($0.name): \($0.value)\r\n" }
        let head = "HTTP/1.1 431 Request Header Fields Too Large\r\n" + headers.joined() + "\r\n"
        let bytes = Array(head.utf8) + response.body
        // The socket's buffer has space, because the previous response was sent.
        _ = systemWrite(request.descriptor, bytes, bytes.count)
    }

    /// Handles a chunk of a request; the first one is the head.
    /// - Returns: the response; nil to read the next chunk, or, if the request is refused, to close the connection.
    private func take(
        _ request: HTTPRequest, _ connection: OpaquePointer, _ method: String, _ part: UnsafePointer<CChar>?,
        _ count: UnsafeMutablePointer<Int>
    ) -> HTTPResponse? {
        if request.isRefused { return nil }
        if request.method.isEmpty {
            request.method = method
            request.headers = Self.fields(connection, .HEADER_KIND).map { ($0.name.lowercased(), $0.value) }
            return request.refusal(limits)
        }
        if count.pointee > 0 {
            defer { count.pointee = 0 }
            if request.droppedBytes == 0, request.body.count + count.pointee <= limits.bodyBytes {
                request.body += UnsafeRawBufferPointer(start: part, count: count.pointee)
            } else {
                // A response is possible only after the last chunk, so read and drop this chunk.
                request.droppedBytes += count.pointee
                request.isRefused = request.droppedBytes > limits.droppedBytes
            }
            return nil
        }
        if request.droppedBytes > 0 { return .tooLong(limits) }
        watch.work(on: request.descriptor)
        let path = request.target.prefix { $0 != UInt8(ascii: "?") }
        guard path.first == UInt8(ascii: "/"), let path = String(validating: path, as: UTF8.self) else {
            return .problem(400, "the path is malformed")
        }
        request.path = path
        request.query = Self.fields(connection, .GET_ARGUMENT_KIND)
        return respond(request)
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

    private func send(_ answer: HTTPResponse, _ connection: OpaquePointer, _ descriptor: Int32) -> MHD_Result {
        let response = answer.body.withUnsafeBytes {
            // `mutating` is safe: libmicrohttpd only copies the bytes.
            MHD_create_response_from_buffer(
                $0.count, UnsafeMutableRawPointer(mutating: $0.baseAddress), .RESPMEM_MUST_COPY)
        }
        guard let response else { return MHD_Result.NO }
        defer { MHD_destroy_response(response) }
        for (name, value) in HTTPResponse.common + answer.headers { MHD_add_response_header(response, name, value) }
        watch.awaitAnswer(descriptor)
        return MHD_queue_response(connection, answer.status, response)
    }
}
