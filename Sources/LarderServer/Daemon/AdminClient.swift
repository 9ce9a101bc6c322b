import LarderEngine
import Platform
import RESP

/// One request to a running daemon, for larderd's own `--purge`.
package enum AdminClient {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Sends commands over the socket and returns their replies. Blocks; gives up if nothing comes for `seconds`.
    package static func request(_ commands: [[String]], socketPath: String, seconds: Int = 300) throws(Failure)
        -> [RESPValue]
    {
        let descriptor: Int32
        do throws(FileError) {
            descriptor = try UnixSocket.connected(to: socketPath)
        } catch {
            throw Failure(description: "cannot connect to \(socketPath): \(SystemErrorText.of(error.number))")
        }
        defer { close(descriptor) }
        UnixSocket.limit(descriptor, milliseconds: seconds * 1000)
        var bytes: [UInt8] = []
        for command in commands { RequestEncoder.encode(command, into: &bytes) }
        do throws(FileError) {
            try FileSystem.writeAll(bytes, descriptor: descriptor, path: socketPath)
        } catch {
            throw Failure(description: error.description)
        }
        return try readReplies(commands.count, descriptor)
    }

    private static func readReplies(_ count: Int, _ descriptor: Int32) throws(Failure) -> [RESPValue] {
        var parser = ReplyParser()
        var replies: [RESPValue] = []
        while replies.count < count {
            do throws(ProtocolError) {
                if let reply = try parser.next() {
                    replies.append(reply)
                    continue
                }
            } catch {
                throw Failure(description: error.message)
            }
            let space = parser.writableSpace(atLeast: 4096)
            let received = recv(descriptor, space.baseAddress, space.count, 0)
            if received < 0, errno == EINTR { continue }
            guard received > 0 else { throw Failure(description: "the daemon did not answer") }
            parser.didWrite(received)
        }
        return replies
    }
}
