import Threading

@testable import larderbench

/// Serves one connection on a Unix socket: answers each line that arrives with the next of its replies, over and over.
///
/// Thread-safe: only its thread uses the sockets after `init`.
final class ScriptedServer: Sendable {
    private let thread: WorkThread

    /// - Parameter endAfter: ends the connection after so many lines.
    init(_ path: String, replies: [String], endAfter: Int? = nil) throws {
        let listener = try Self.listen(path)
        let replies = replies.map { Array($0.utf8) }
        thread = WorkThread(name: "scripted") {
            let peer = accept(listener, nil, nil)
            close(listener)
            defer { close(peer) }
            var buffer = [UInt8](repeating: 0, count: 65_536)
            var lines = 0
            while true {
                let count = buffer.withUnsafeMutableBytes { unistdRead(peer, $0) }
                guard count > 0 else { return }
                var answer: [UInt8] = []
                for byte in buffer[..<count] where byte == 0x0A {
                    answer += replies[lines % replies.count]
                    lines += 1
                    if let endAfter, lines >= endAfter { return }
                }
                guard answer.withUnsafeBytes({ unistdWrite(peer, $0) }) == answer.count else { return }
            }
        }
    }

    func join() { thread.join() }

    private static func listen(_ path: String) throws -> Int32 {
        #if os(Linux)
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        #else
            let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let status = withUnsafeBytes(of: &address) { bytes in
            bind(descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
        guard status == 0, startListening(descriptor) == 0 else { throw BenchError.system("listen") }
        return descriptor
    }
}

/// `listen` of the C library, whose name is taken in the type above.
private func startListening(_ descriptor: Int32) -> Int32 { listen(descriptor, 1) }
