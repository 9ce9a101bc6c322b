import LarderPlatform
import LarderRESP

/// Sends commands to a running daemon, for `larderd --purge`. Each call of ``request(_:seconds:)`` opens a connection
/// of its own.
package struct AdminClient {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
        package init(_ description: String) { self.description = description }
    }

    private let socketPath: String
    private let password: [UInt8]?
    private let owner: uid_t?

    /// - Parameters:
    ///   - password: sent before the commands; nil for none.
    ///   - directory: the larder's directory. Commands are sent only to a daemon that runs as the directory's owner, as
    ///     root, or as the user of this process.
    package init(socketPath: String, password: [UInt8]?, directory: String) {
        self.socketPath = socketPath
        self.password = password
        var status = stat()
        owner = stat(directory, &status) == 0 ? status.st_uid : nil
    }

    /// Sends commands one after the other, and returns their replies. Stops after the first error reply: the next
    /// commands may depend on the failed one, for example on a SELECT. Blocks for at most `seconds` per reply.
    package func request(_ commands: [[String]], seconds: Int = 300) throws(Failure) -> [RESPValue] {
        let descriptor: Int32
        do throws(FileError) {
            descriptor = try UnixSocket.connected(to: socketPath)
        } catch {
            throw Failure("cannot connect to \(socketPath): \(SystemErrorText.of(error.number))")
        }
        defer { close(descriptor) }
        try checkPeer(descriptor)
        UnixSocket.limit(descriptor, milliseconds: seconds * 1000)
        var parser = ReplyParser()
        if let password, let error = try reply(to: [Array("AUTH".utf8), password], descriptor, &parser).errorMessage {
            throw Failure("the daemon at \(socketPath) refuses the password: \(error) (--password-file)")
        }
        var replies: [RESPValue] = []
        for command in commands {
            let reply = try reply(to: command.map { Array($0.utf8) }, descriptor, &parser)
            replies.append(reply)
            guard let error = reply.errorMessage else { continue }
            if error.hasPrefix("NOAUTH") {
                throw Failure("the daemon at \(socketPath) needs a password: use --password-file")
            }
            break
        }
        return replies
    }

    private func checkPeer(_ descriptor: Int32) throws(Failure) {
        guard let peer = UnixSocket.peerUser(descriptor) else {
            throw Failure("cannot determine which user runs the process at \(socketPath): \(SystemErrorText.of(errno))")
        }
        guard peer == 0 || peer == geteuid() || peer == owner else {
            throw Failure(
                "the process at \(socketPath) runs as user \(peer), which is neither root, nor the user of this "
                    + "process (\(geteuid())), nor the owner of the larder: nothing was sent")
        }
    }

    private func reply(
        to words: [[UInt8]], _ descriptor: Int32, _ parser: inout ReplyParser
    ) throws(Failure) -> RESPValue {
        var bytes: [UInt8] = []
        RequestEncoder.encode(words, into: &bytes)
        do throws(FileError) {
            try FileSystem.writeAll(bytes, descriptor: descriptor, path: socketPath)
        } catch {
            throw Failure(error.description)
        }
        while true {
            do throws(ProtocolError) {
                if let reply = try parser.next() { return reply }
            } catch {
                throw Failure(error.message)
            }
            let space = parser.writableSpace(atLeast: 4096)
            let received = recv(descriptor, space.baseAddress, space.count, 0)
            if received < 0, errno == EINTR { continue }
            guard received > 0 else { throw Failure("the daemon did not reply") }
            parser.didWrite(received)
        }
    }
}
