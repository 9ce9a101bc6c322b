import LarderPlatform
import LarderServices

/// The listening socket of larderweb, TCP or Unix-domain. Confined to the main thread.
final class WebSocket {
    let descriptor: Int32
    /// The address or path, as shown to users.
    let name: String
    /// The host name in the address; empty for a Unix-domain socket.
    let hosts: Set<String>
    private let file: SocketFile?

    init(_ options: WebOptions) throws(SocketFile.Failure) {
        switch options.listen {
        case .unix(let path):
            let file = try SocketFile(
                path: path, access: options.socketAccess,
                for: SocketFile.Name(program: "larderweb", option: "--listen"))
            (descriptor, name, hosts, self.file) = (file.descriptor, "unix:" + path, [], file)
        case .network(let host, let port):
            do throws(FileError) {
                let made = try NetworkSocket.listening(host: host, port: port)
                let shown = options.listen.hostName ?? host
                (descriptor, hosts, file) = (made.descriptor, [shown.lowercased()], nil)
                name = "http://\(shown):\(made.port)/"
            } catch {
                throw SocketFile.Failure(kind: .system, description: "cannot \(error)")
            }
        }
    }

    func remove() { file?.remove() }

    deinit { if file == nil { close(descriptor) } }
}
