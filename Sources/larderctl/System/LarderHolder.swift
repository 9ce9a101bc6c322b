import LarderPlatform

/// The process that has a larder open, as recorded in the larder's file LOCK.
enum LarderHolder {
    case nobody
    /// - Parameter socket: the socket of the daemon; nil if the process is not a daemon.
    case process(pid: String, socket: String?)

    /// Returns the process that has a larder open. Changes nothing.
    /// - Throws: ``CheckFailure`` if the file cannot be read.
    static func find(_ directory: String) throws -> LarderHolder {
        let path = directory + "/LOCK"
        let file = FileSystem.openFile(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else {
            if errno == ENOENT { return .nobody }
            throw CheckFailure(message: "\(path) could not be opened: \(SystemErrorText.of(errno))")
        }
        defer { close(file) }
        if flock(file, LOCK_SH | LOCK_NB) == 0 {
            flock(file, LOCK_UN)
            return .nobody
        }
        let bytes = (try? FileSystem.read(descriptor: file, path: path, bytesMax: 4096)) ?? []
        var (pid, socket): (String, String?) = ("unknown", nil)
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            if line.hasPrefix("pid ") { pid = String(line.dropFirst(4)) }
            if line.hasPrefix("socket ") { socket = String(line.dropFirst(7)) }
        }
        return .process(pid: pid, socket: socket)
    }
}

/// Finds and runs the program larderd, for operations that larderctl cannot do itself.
enum DaemonProgram {
    /// Returns the path of larderd, next to this program or else in `PATH`; nil if it is not found.
    static func find() -> String? {
        var places = [FileSystem.parent(Program.path)]
        if let path = getenv("PATH") {
            // Ignore empty and relative elements, which would refer to the current directory.
            places += String(cString: path).split(separator: ":").map(String.init).filter { $0.hasPrefix("/") }
        }
        return places.map { $0 + "/larderd" }.first { access($0, X_OK) == 0 && !FileSystem.isDirectory($0) }
    }

    /// Replaces this process with `program` by execv(3).
    /// - Returns: the error. If execv succeeds, this function does not return.
    static func become(_ program: String, _ words: [String]) -> InputOutputError {
        var arguments: [UnsafeMutablePointer<CChar>?] = ([program] + words).map { strdup($0) } + [nil]
        execv(program, &arguments)
        let number = errno
        for argument in arguments { free(argument) }
        return InputOutputError(message: "\(program) could not be run: \(SystemErrorText.of(number))")
    }
}
