import Platform

/// The socket on which the daemon listens: one that it has made, or one that was passed to it.
///
/// Confined to the thread of the first loop while the server runs.
final class ListeningSocket {
    let path: String
    let descriptor: Int32
    /// Nil for a passed one, which belongs to the service manager.
    private let file: SocketFile?

    init(_ configuration: ServerConfiguration) throws(SocketFile.Failure) {
        if let passed = configuration.passedSocket {
            (path, descriptor, file) = (passed.path, passed.descriptor, nil)
            return
        }
        let file = try SocketFile(path: configuration.socketPath)
        (path, descriptor, self.file) = (file.path, file.descriptor, file)
    }

    /// What the log says of it at the start; nil for nothing.
    var note: String? {
        guard let file else { return "the socket \(path) was passed by the service manager, which keeps it" }
        return file.hasMadeDirectory
            ? "made the socket's directory \(FileSystem.parent(path)), which was missing, with mode 0700" : nil
    }

    /// Removes the file, if it is still ours. What was passed stays: others wait on it.
    func remove() { file?.remove() }

    deinit { if file == nil { close(descriptor) } }
}
