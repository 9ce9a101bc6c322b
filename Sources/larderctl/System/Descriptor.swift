import LarderClient
import LarderPlatform

/// Opens and reads descriptors that may be non-blocking, such as a terminal that another program has changed.
enum Descriptor {
    /// The terminal of standard input, opened so that reading never blocks; standard input if it cannot be opened.
    /// Ctrl-C discards keys, also those that poll(2) has reported. A read that blocks would then wait for another key.
    static let keys: Int32 = {
        guard let path = ttyname(STDIN_FILENO) else { return STDIN_FILENO }
        let terminal = try? open(String(cString: path), O_RDONLY | O_NONBLOCK | O_NOCTTY)
        return terminal ?? STDIN_FILENO
    }()

    /// Opens a file. Programs that this one runs do not inherit the descriptor.
    static func open(_ path: String, _ flags: Int32, _ mode: mode_t = 0) throws(InputOutputError) -> Int32 {
        let descriptor = FileSystem.openFile(path, flags | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw InputOutputError("\(path) could not be opened") }
        return descriptor
    }

    /// Waits until a descriptor can be read, for at most the given time. A signal may end the wait early.
    /// - Parameters:
    ///   - descriptors: negative ones are ignored.
    ///   - milliseconds: -1 for no limit.
    /// - Returns: whether each descriptor is ready.
    @discardableResult
    static func poll(_ descriptors: Int32..., milliseconds: Int64 = -1) -> [Bool] {
        var entries = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        guard systemPoll(&entries, nfds_t(entries.count), Int32(clamping: milliseconds)) > 0 else {
            return descriptors.map { _ in false }
        }
        return entries.map { $0.revents != 0 }
    }

    /// Reads bytes. Waits until there are some.
    /// - Returns: the number of bytes; 0 at the end; negative after an error, with `errno` set.
    static func read(_ descriptor: Int32, _ start: UnsafeMutableRawPointer?, _ count: Int) -> Int {
        while true {
            let count = systemRead(descriptor, start, count)
            if count >= 0 || errno != EAGAIN && errno != EINTR { return count }
            if errno == EAGAIN { poll(descriptor) }
        }
    }
}

/// A pipe whose ends are not inherited by other programs.
struct Pipe: Sendable {
    let readEnd: Int32
    let writeEnd: Int32

    /// - Parameter purpose: what the pipe is for, for an error.
    init(for purpose: String) throws(InputOutputError) {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw InputOutputError("cannot create a pipe for \(purpose)") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        (readEnd, writeEnd) = (ends[0], ends[1])
    }

    /// Writes a byte, such as the number of a signal, to wake the reader.
    func send(_ number: Int32 = 0) {
        var byte = UInt8(truncatingIfNeeded: number)
        _ = systemWrite(writeEnd, &byte, 1)
    }

    /// Reads a byte; nil if that fails. Blocks if there is none.
    func receive() -> Int32? {
        var byte: UInt8 = 0
        return systemRead(readEnd, &byte, 1) == 1 ? Int32(byte) : nil
    }
}

/// Reads a whole file or all of standard input.
enum Input {
    /// The maximum length of a value that the daemon accepts, in bytes.
    static let bytesMax = 536_870_912

    static func standardInput() throws(InputOutputError) -> [UInt8] { try readAll(STDIN_FILENO, "standard input") }

    static func file(_ path: String) throws(InputOutputError) -> [UInt8] {
        let descriptor = try Descriptor.open(path, O_RDONLY)
        defer { close(descriptor) }
        return try readAll(descriptor, path)
    }

    private static func readAll(_ descriptor: CInt, _ name: String) throws(InputOutputError) -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Descriptor.read(descriptor, &piece, piece.count)
            if count == 0 { return bytes }
            guard count > 0 else { throw InputOutputError("\(name) could not be read") }
            guard bytes.count + count <= bytesMax else {
                throw InputOutputError(message: "\(name) has more than \(bytesMax) bytes, the limit of a value")
            }
            bytes.append(contentsOf: piece[..<count])
        }
    }
}
