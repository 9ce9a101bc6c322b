import LarderEngine

/// The daemon's listening socket in the file system.
///
/// - Created with mode 0600, in a directory that is created with mode 0700 if it is missing.
/// - Replaces a socket on which nobody answers, never one on which somebody does.
/// - Removes only the socket that it has bound itself.
final class SocketFile {
    let path: String
    let descriptor: Int32
    private let device: dev_t
    private let inode: ino_t
    /// Held from before the probe until the end, so that of two daemons that start at once only one finds the path
    /// free.
    private let lockDescriptor: Int32

    /// The longest path, in bytes: what `sun_path` holds, without the closing NUL.
    static let pathBytesMax = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    struct Failure: Error, CustomStringConvertible {
        enum Kind {
            /// The path cannot be that of a socket.
            case badPath
            /// Somebody else uses it.
            case taken
            /// The system refused.
            case system
        }

        let kind: Kind
        let description: String
    }

    /// Binds and listens.
    init(path: String) throws(Failure) {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw Failure(kind: .badPath, description: "the socket's path must not be empty")
        }
        guard path.utf8.count <= Self.pathBytesMax else {
            throw Failure(
                kind: .badPath,
                description: "the socket's path is \(path.utf8.count) bytes long, the system allows "
                    + "\(Self.pathBytesMax): choose a shorter one with --socket")
        }
        do throws(FileError) {
            try FileSystem.makeDirectories(FileSystem.parent(path), mode: 0o700)
        } catch {
            throw Failure(kind: .system, description: "cannot make the socket's directory: \(error)")
        }
        try Self.checkOwner(FileSystem.parent(path))
        let lock = try Self.takeLock(path)
        do throws(Failure) {
            try Self.makeRoom(path)
            descriptor = try Self.bind(path)
        } catch {
            close(lock)
            throw error
        }
        var status = stat()
        lstat(path, &status)
        device = status.st_dev
        inode = status.st_ino
        lockDescriptor = lock
        self.path = path
    }

    /// Stops listening and removes the file, if it is still ours.
    func remove() {
        var status = stat()
        if lstat(path, &status) == 0, status.st_dev == device, status.st_ino == inode { unlink(path) }
        unlink(path + ".lock")
    }

    deinit {
        close(descriptor)
        // By name, because a child between fork and exec may have a copy of the descriptor.
        flock(lockDescriptor, LOCK_UN)
        close(lockDescriptor)
    }

    /// If the directory belongs to another user, that user could replace our socket.
    private static func checkOwner(_ directory: String) throws(Failure) {
        var status = stat()
        guard geteuid() != 0, stat(directory, &status) == 0 else { return }
        guard status.st_uid == geteuid() || status.st_uid == 0 else {
            throw Failure(
                kind: .system,
                description: "the socket's directory \(directory) belongs to another user (uid "
                    + "\(status.st_uid)): choose another --socket")
        }
    }

    private static func takeLock(_ path: String) throws(Failure) -> Int32 {
        let lockPath = path + ".lock"
        while true {
            let file = open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard file >= 0 else { throw failure("cannot create", lockPath) }
            guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
                close(file)
                throw Failure(
                    kind: .taken,
                    description: "another larderd is using the socket \(path): stop it, or choose another --socket")
            }
            // Its last holder may have removed it between the open and the lock: then this lock is on a file that
            // others do not see.
            var opened = stat()
            var named = stat()
            if fstat(file, &opened) == 0, lstat(lockPath, &named) == 0, opened.st_ino == named.st_ino { return file }
            close(file)
        }
    }

    /// Removes a dead socket. Throws if something else is in the way.
    private static func makeRoom(_ path: String) throws(Failure) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw Failure(
                kind: .system,
                description: "\(path) exists and is not a socket: it is left alone, choose another --socket")
        }
        if let answer = try? UnixSocket.connect(path) {
            close(answer)
            throw Failure(
                kind: .taken,
                description: "a live process answers on the socket \(path): stop it, or choose another --socket")
        }
        guard unlink(path) == 0 else { throw failure("cannot replace the dead socket", path) }
    }

    private static func bind(_ path: String) throws(Failure) -> Int32 {
        let descriptor = UnixSocket.make()
        guard descriptor >= 0 else { throw failure("cannot make a socket for", path) }
        // The file must never exist with more rights than 0600.
        #if canImport(Darwin)
            // The mask belongs to the whole process; there is no other way here.
            let mask = umask(0o177)
            defer { umask(mask) }
        #else
            // Linux gives the file the rights of the socket (unix(7)).
            guard fchmod(descriptor, 0o600) == 0 else {
                let error = failure("cannot set the rights of a socket for", path)
                close(descriptor)
                throw error
            }
        #endif
        let status = UnixSocket.withAddress(path) { address, length in
            #if canImport(Darwin)
                Darwin.bind(descriptor, address, length)
            #else
                Glibc.bind(descriptor, address, length)
            #endif
        }
        guard status == 0 else {
            let error = failure("cannot bind", path)
            close(descriptor)
            throw error
        }
        guard listen(descriptor, 1024) == 0 else {
            let error = failure("cannot listen on", path)
            close(descriptor)
            unlink(path)
            throw error
        }
        return descriptor
    }

    private static func failure(_ what: String, _ path: String) -> Failure {
        Failure(kind: .system, description: "\(what) \(path): \(String(cString: strerror(errno)))")
    }
}

/// Stream sockets in the file system.
enum UnixSocket {
    struct Failure: Error { let number: Int32 }

    /// A new socket, closed on exec; negative on failure.
    static func make() -> Int32 {
        #if canImport(Glibc)
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        #else
            let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        return descriptor
    }

    /// Runs `body` with the socket address of a path that fits.
    static func withAddress<Result>(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { field in
            // The path has at most one byte less than the field, which is zero: the closing NUL stays.
            field.copyBytes(from: path.utf8.prefix(field.count - 1))
        }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    /// Connects to a path.
    static func connect(_ path: String) throws(Failure) -> Int32 {
        guard path.utf8.count <= SocketFile.pathBytesMax else { throw Failure(number: ENAMETOOLONG) }
        let descriptor = make()
        guard descriptor >= 0 else { throw Failure(number: errno) }
        let status = withAddress(path) { address, length in
            #if canImport(Darwin)
                Darwin.connect(descriptor, address, length)
            #else
                Glibc.connect(descriptor, address, length)
            #endif
        }
        guard status == 0 else {
            let number = errno
            close(descriptor)
            throw Failure(number: number)
        }
        return descriptor
    }
}
