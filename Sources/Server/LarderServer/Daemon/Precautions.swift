import LarderPlatform

/// Warnings about settings that give other users more or less access than the administrator may expect.
enum Precautions {
    static func warnings(_ configuration: ServerConfiguration) -> [String] {
        passwordWarnings(configuration.passwordPath) + socketWarnings(configuration) + accessWarnings(configuration)
            + idleRules(configuration.rules) + larderWarnings(configuration.directory)
    }

    private static func larderWarnings(_ directory: String) -> [String] {
        guard FileSystem.isWritableByOthers(directory) else { return [] }
        return ["other users can write to the larder's directory \(directory), and could replace its files: chmod go-w"]
    }

    /// Warns if users have rights, but cannot connect because of the mode of the socket.
    private static func accessWarnings(_ configuration: ServerConfiguration) -> [String] {
        // If a service manager has passed the socket, the service manager sets its mode.
        guard configuration.passedSocket == nil, configuration.socketAccess.isPrivate else { return [] }
        let own = [0, geteuid()]
        guard configuration.rules.all.contains(where: { $0.kind == .group || !own.contains($0.number) }) else {
            return []
        }
        return [
            "other users have rights, but the socket's mode is \(configuration.socketAccess.modeText), so they cannot "
                + "connect (--socket-mode, --socket-group)"
        ]
    }

    /// Warns about rules that have no effect, because their users have all rights anyway.
    private static func idleRules(_ rules: AccessRules) -> [String] {
        let own = [0, geteuid()]
        return rules.all.filter { $0.kind == .user && own.contains($0.number) }.map {
            "the rule \($0.text) has no effect: root and the daemon's user always have all rights"
        }
    }

    /// Warns about the file that contains the password.
    /// - Parameter path: the path of the file; empty for none.
    static func passwordWarnings(_ path: String) -> [String] { PasswordFile.warnings(path, program: "larderd") }

    private static func socketWarnings(_ configuration: ServerConfiguration) -> [String] {
        // If a service manager has passed the socket, the service manager also manages its directory.
        guard configuration.passedSocket == nil else { return [] }
        let directory = FileSystem.parent(configuration.socketPath)
        var warnings = [configuration.socketAccess.obstacle(in: directory)].compactMap { $0 }
        // A directory with the sticky bit, such as /tmp, is safe: only the owner of a file can remove it.
        if let mode = mode(directory), mode & 0o002 != 0, mode & mode_t(S_ISVTX) == 0 {
            warnings.append(
                "all users can write to the socket's directory \(directory), and could replace the daemon's socket: "
                    + "chmod o-w")
        }
        return warnings
    }

    private static func mode(_ path: String) -> mode_t? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode : nil
    }
}
