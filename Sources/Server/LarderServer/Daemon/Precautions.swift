import LarderPlatform

/// Warns about settings that may give other users more access than intended.
enum Precautions {
    static func warnings(_ configuration: ServerConfiguration) -> [String] {
        passwordWarnings(configuration.passwordPath) + socketWarnings(configuration) + accessWarnings(configuration)
            + idleRules(configuration.rules)
    }

    /// Warns about rights of users who cannot connect.
    private static func accessWarnings(_ configuration: ServerConfiguration) -> [String] {
        // The mode of a passed socket is set by the service manager.
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

    /// Warns about rules for users with all rights.
    private static func idleRules(_ rules: AccessRules) -> [String] {
        let own = [0, geteuid()]
        return rules.all.filter { $0.kind == .user && own.contains($0.number) }.map {
            "the rule \($0.text) has no effect: root and the daemon's user always have all rights"
        }
    }

    /// - Parameter path: empty for no file.
    static func passwordWarnings(_ path: String) -> [String] { PasswordFile.warnings(path, program: "larderd") }

    private static func socketWarnings(_ configuration: ServerConfiguration) -> [String] {
        // The directory of a passed socket is managed by the service manager.
        guard configuration.passedSocket == nil else { return [] }
        let directory = FileSystem.parent(configuration.socketPath)
        var warnings = [configuration.socketAccess.obstacle(in: directory)].compactMap { $0 }
        // In a sticky directory such as /tmp, only the owner of a file may remove it.
        if let mode = mode(directory), mode & 0o002 != 0, mode & mode_t(S_ISVTX) == 0 {
            warnings.append(
                "all users can write to the socket's directory \(directory), and could replace the socket of this "
                    + "one: chmod o-w")
        }
        return warnings
    }

    private static func mode(_ path: String) -> mode_t? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode : nil
    }
}
