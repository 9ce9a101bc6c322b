import LarderPlatform

/// A listening Unix-domain socket of a service.
///
/// - Sets the requested mode and group before clients can connect. Creates a missing directory with matching rights.
/// - Replaces a socket file on which no process listens, but never a socket file that is in use.
/// - Removes only the socket file that it has created itself.
///
/// For one thread at a time.
package final class SocketFile {
    package let path: String
    private let program: Name
    private let access: SocketAccess
    package private(set) var descriptor: Int32
    /// Whether this object has created the socket's directory.
    package private(set) var hasMadeDirectory: Bool
    private var device: dev_t
    private var inode: ino_t
    /// The descriptor of the locked file `<path>.lock`. The lock is taken before the path is checked. So if two daemons
    /// start at the same time, only one of them gets the path.
    private var lockDescriptor: Int32

    /// The name of the program, and its option for the socket's path with an argument, for error messages.
    package struct Name: Sendable {
        let program: String
        let option: String

        package init(program: String, option: String) { (self.program, self.option) = (program, option) }

        /// The command with which the program uses another socket, at the end of messages.
        var other: String { "choose another one with: \(program) \(option)" }
    }

    package struct Failure: Error, CustomStringConvertible {
        package enum Kind {
            /// The path is not valid for a socket.
            case badPath
            /// Another process uses the path.
            case taken
            /// A system call failed, or the file or its directory is unsuitable.
            case system
        }

        package let kind: Kind
        package let description: String

        package init(kind: Kind, description: String) { (self.kind, self.description) = (kind, description) }
    }

    /// Returns why a path is not valid for a socket; nil if it is valid. Does not look at the file system.
    package static func problem(with path: String, for program: Name) -> String? {
        if path.isEmpty || path.utf8.contains(0) { return "the socket's path must not be empty or contain a NUL byte" }
        guard path.utf8.count > UnixSocket.pathBytesMax else { return nil }
        return "the socket's path is \(path.utf8.count) bytes long, but the system allows \(UnixSocket.pathBytesMax): "
            + "choose a shorter one with \(program.option)"
    }

    /// Creates the socket file and starts to listen.
    package init(path: String, access: SocketAccess = SocketAccess(), for program: Name) throws(Failure) {
        if let problem = Self.problem(with: path, for: program) { throw Failure(kind: .badPath, description: problem) }
        hasMadeDirectory = try Self.makeDirectory(FileSystem.parent(path), access, program)
        let lock = try Self.takeLock(path, program)
        do throws(Failure) {
            try Self.makeRoom(path, program)
            descriptor = try Self.bind(path, access)
        } catch {
            unlink(path + ".lock")
            close(lock)
            throw error
        }
        (device, inode) = Self.identity(path)
        lockDescriptor = lock
        self.path = path
        self.program = program
        self.access = access
    }

    private static func identity(_ path: String) -> (dev_t, ino_t) {
        var status = stat()
        return lstat(path, &status) == 0 ? (status.st_dev, status.st_ino) : (0, 0)
    }

    /// What is at the socket's path: this socket, nothing, or another file.
    package enum Presence {
        case ours, missing, somethingElse
    }

    package var presence: Presence {
        var status = stat()
        guard lstat(path, &status) == 0 else { return errno == ENOENT || errno == ENOTDIR ? .missing : .ours }
        return status.st_dev == device && status.st_ino == inode ? .ours : .somethingElse
    }

    /// Creates the socket file again after another process has removed it, and listens. Existing connections stay open.
    /// - Returns: the old listening descriptor, to be closed by the caller.
    package func bindAgain() throws(Failure) -> Int32 {
        hasMadeDirectory = try Self.makeDirectory(FileSystem.parent(path), access, program)
        if !isLockInPlace {
            let lock = try Self.takeLock(path, program)
            close(lockDescriptor)
            lockDescriptor = lock
        }
        try Self.makeRoom(path, program)
        let new = try Self.bind(path, access)
        defer { descriptor = new }
        (device, inode) = Self.identity(path)
        return descriptor
    }

    /// Creates the socket's directory if it is missing.
    /// - Returns: whether the directory was missing.
    private static func makeDirectory(
        _ directory: String, _ access: SocketAccess, _ program: Name
    ) throws(Failure) -> Bool {
        var missing: [String] = []
        var path = directory
        while !FileSystem.isDirectory(path), path != FileSystem.parent(path) {
            missing.append(path)
            path = FileSystem.parent(path)
        }
        do throws(FileError) {
            try FileSystem.makeDirectories(directory, mode: access.directoryMode)
        } catch {
            throw Failure(
                kind: .system, description: "cannot create the socket's directory: \(error): \(program.other)")
        }
        try checkOwner(directory, program)
        // The socket's group has to enter all created directories, so each of them gets that group.
        for directory in missing.reversed() {
            if let group = access.group, chown(directory, uid_t.max, group) != 0 {
                throw failure("cannot change the group (to \(group)) of the directory", directory)
            }
            // Set the mode again, because the umask limited that of mkdir(2).
            if access.directoryMode != 0o700, chmod(directory, access.directoryMode) != 0 {
                throw failure("cannot set the rights of the directory", directory)
            }
        }
        return !missing.isEmpty
    }

    /// Removes the socket file and the lock file, but not files that another process has created in their place.
    package func remove() {
        var status = stat()
        if lstat(path, &status) == 0, status.st_dev == device, status.st_ino == inode { unlink(path) }
        if isLockInPlace { unlink(path + ".lock") }
    }

    /// Whether the locked file is still at its path. If the file was removed, other processes would lock a new file.
    private var isLockInPlace: Bool {
        var held = stat()
        return fstat(lockDescriptor, &held) == 0 && Self.identity(path + ".lock") == (held.st_dev, held.st_ino)
    }

    deinit {
        close(descriptor)
        // Unlock explicitly: a copy of the descriptor in a child process (before exec) would keep the lock.
        flock(lockDescriptor, LOCK_UN)
        close(lockDescriptor)
    }

    /// Throws if the directory belongs to another user (except root), because that user could replace the socket.
    private static func checkOwner(_ directory: String, _ program: Name) throws(Failure) {
        var status = stat()
        guard geteuid() != 0, stat(directory, &status) == 0 else { return }
        guard status.st_uid == geteuid() || status.st_uid == 0 else {
            throw Failure(
                kind: .system,
                description: "the socket's directory \(directory) belongs to another user (uid "
                    + "\(status.st_uid)): \(program.other)")
        }
    }

    private static func takeLock(_ path: String, _ program: Name) throws(Failure) -> Int32 {
        let lockPath = path + ".lock"
        while true {
            let file = open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard file >= 0 else {
                let number = errno
                let reason = failure("cannot create", lockPath)
                throw Failure(kind: .system, description: "\(reason): \(advice(lockPath, number))\(program.other)")
            }
            guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
                close(file)
                throw Failure(
                    kind: .taken,
                    description:
                        "another \(program.program) is using the socket \(path): stop it, or \(program.other)"
                )
            }
            // The previous owner may have removed the file after this process opened it. Other processes would then
            // lock a new file. So check that the path still leads to the locked file, and try again if not.
            var opened = stat()
            var named = stat()
            if fstat(file, &opened) == 0, lstat(lockPath, &named) == 0, opened.st_ino == named.st_ino { return file }
            close(file)
        }
    }

    /// What helps if a file cannot be created, before another path is suggested; empty if unknown.
    private static func advice(_ path: String, _ number: Int32) -> String {
        guard number == EACCES else { return "" }
        let directory = ShellWord.quoted(FileSystem.parent(path))
        return "give the directory to this user: chown \(geteuid()) \(directory), or "
    }

    /// Removes a socket file on which no process listens. Throws if a process listens, or if the file is not a socket.
    private static func makeRoom(_ path: String, _ program: Name) throws(Failure) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw Failure(
                kind: .system,
                description: "\(path) exists and is not a socket: \(program.other)")
        }
        if UnixSocket.hasListener(at: path) {
            throw Failure(
                kind: .taken,
                description:
                    "a running process uses the socket \(path): stop it, or \(program.other)")
        }
        guard unlink(path) == 0 else { throw failure("cannot replace the dead socket", path) }
    }

    private static func bind(_ path: String, _ access: SocketAccess) throws(Failure) -> Int32 {
        let descriptor = UnixSocket.make()
        guard descriptor >= 0 else { throw failure("cannot create a socket for", path) }
        do throws(Failure) {
            try bind(descriptor, path)
            // Clients cannot connect before listen(2).
            do throws(Failure) {
                if let group = access.group, lchown(path, uid_t.max, group) != 0 {
                    throw failure("cannot change the group (to \(group)) of the socket", path)
                }
                if access.mode != 0o600, chmod(path, access.mode) != 0 {
                    throw failure("cannot set the rights of the socket", path)
                }
                guard listen(descriptor, 1024) == 0 else { throw failure("cannot listen on", path) }
            } catch {
                unlink(path)
                throw error
            }
        } catch {
            close(descriptor)
            throw error
        }
        return descriptor
    }

    /// Creates the socket file with mode 0600.
    private static func bind(_ descriptor: Int32, _ path: String) throws(Failure) {
        // The file must not have more rights than 0600 even for a moment.
        #if canImport(Darwin)
            // The umask affects all threads of the process, but this system has no other way.
            let mask = umask(0o177)
            defer { umask(mask) }
        #else
            // On Linux, the file gets the mode of the socket's descriptor (unix(7)).
            guard fchmod(descriptor, 0o600) == 0 else { throw failure("cannot set the rights of a socket for", path) }
        #endif
        let number = UnixSocket.bind(descriptor, to: path)
        guard number == 0 else { throw failure("cannot bind", path, number) }
    }

    private static func failure(_ what: String, _ path: String, _ number: Int32 = errno) -> Failure {
        Failure(kind: .system, description: "\(what) \(path): \(SystemErrorText.of(number))")
    }
}

/// The access rights of the daemon's socket: its mode and its group.
package struct SocketAccess: Equatable, Sendable {
    private var given: mode_t?
    /// The group of the socket; nil for the group of the process.
    package var group: gid_t?

    package init() {}

    /// The mode of the socket. The default is 0600, or 0660 if ``group`` is set.
    package var mode: mode_t {
        get { given ?? (group == nil ? 0o600 : 0o660) }
        set { given = newValue }
    }

    /// Whether only the owner may connect.
    package var isPrivate: Bool { mode & 0o066 == 0 }

    package var modeText: String { String(mode, radix: 8) }

    /// The mode for the socket's directory: users who may connect to the socket can enter the directory too.
    package var directoryMode: mode_t { 0o700 | (mode & 0o060 == 0 ? 0 : 0o050) | (mode & 0o006 == 0 ? 0 : 0o055) }

    /// Returns why users who may connect to the socket cannot enter its directory; nil if they can.
    package func obstacle(in directory: String) -> String? {
        var status = stat()
        guard stat(directory, &status) == 0 else { return nil }
        if mode & 0o006 != 0, status.st_mode & 0o001 == 0 {
            return "other users may use the socket, but cannot enter its directory \(directory): chmod o+x"
        }
        if mode & 0o060 != 0, status.st_mode & 0o001 == 0,
            status.st_mode & 0o010 == 0 || status.st_gid != group ?? getegid()
        {
            return "the socket's group may use it, but cannot enter its directory \(directory): chgrp, chmod g+x"
        }
        return nil
    }
}
