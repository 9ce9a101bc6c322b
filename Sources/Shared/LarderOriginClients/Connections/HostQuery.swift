import CLarderUV
import LarderPlatform

/// A DNS lookup of a host name. Runs on libuv's thread pool, so that it does not block the loop.
final class HostQuery {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    typealias Answer = (Result<[SocketAddress], Failure>) -> Void

    private let answer: Answer

    private init(_ answer: @escaping Answer) { self.answer = answer }

    /// Starts a lookup. `answer` is called on the loop's thread.
    /// - Returns: nil, or the reason why the lookup could not be started. In that case `answer` is not called.
    static func ask(_ loop: OriginLoop, host: String, port: UInt16, _ answer: @escaping Answer) -> String? {
        let request = UnsafeMutablePointer<uv_getaddrinfo_t>.allocate(capacity: 1)
        request.initialize(to: uv_getaddrinfo_t())
        let query = Unmanaged.passRetained(HostQuery(answer))
        request.pointee.data = query.toOpaque()
        var hints = StreamConnecting.hints()
        let status = uv_getaddrinfo(
            loop.uv, request,
            { request, status, list in
                guard let request, let data = request.pointee.data else { return }
                let query = Unmanaged<HostQuery>.fromOpaque(data).takeRetainedValue()
                let addresses = SocketAddress.all(of: list)
                uv_freeaddrinfo(list)
                request.deallocate()
                query.answer(
                    status == 0
                        ? .success(addresses)
                        : .failure(
                            Failure(description: "its name cannot be resolved: \(String(cString: uv_strerror(status)))")
                        ))
            }, host, String(port), &hints)
        guard status != 0 else { return nil }
        query.release()
        request.deallocate()
        return String(cString: uv_strerror(status))
    }
}
