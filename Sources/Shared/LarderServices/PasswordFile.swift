import LarderPlatform

/// What an operator should know of a file with a password.
package enum PasswordFile {
    /// Who else may read or change it.
    /// - Parameters:
    ///   - path: empty for no file.
    ///   - program: who reads it, for the text.
    /// - Returns: one line each; nothing of a file that cannot be looked at.
    package static func warnings(_ path: String, program: String) -> [String] {
        var status = stat()
        guard !path.isEmpty, stat(path, &status) == 0 else { return [] }
        var warnings: [String] = []
        // Root may do everything in any case.
        if status.st_uid != 0, status.st_uid != geteuid() {
            warnings.append(
                "the password file \(path) belongs to another user (uid \(status.st_uid)), who may change it: chown it to "
                    + "root or to the user who runs \(program) (\(geteuid()))")
        }
        if status.st_mode & 0o002 != 0 {
            warnings.append("everybody may write the password file \(path): chmod o-rw")
        } else if status.st_mode & 0o004 != 0 {
            warnings.append("everybody may read the password file \(path): chmod o-r")
        }
        if status.st_mode & 0o022 == 0o020 {
            warnings.append(
                "the group with gid \(status.st_gid) may write the password file \(path): chmod g-w")
        }
        return warnings
    }
}
