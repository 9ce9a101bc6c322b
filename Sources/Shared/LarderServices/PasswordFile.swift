import LarderPlatform

/// Checks the access rights of password files.
package enum PasswordFile {
    /// Returns a warning for each way in which other users can read or change the file.
    /// - Parameters:
    ///   - path: the path of the file; empty if there is none.
    ///   - program: the name, for the warnings, of the program that reads the file.
    /// - Returns: one line for each warning; none if the file cannot be checked.
    package static func warnings(_ path: String, program: String) -> [String] {
        var status = stat()
        guard !path.isEmpty, stat(path, &status) == 0 else { return [] }
        var warnings: [String] = []
        // Root can read and change any file.
        if status.st_uid != 0, status.st_uid != geteuid() {
            warnings.append(
                "the password file \(path) belongs to another user (uid \(status.st_uid)), who can change it: chown it to "
                    + "root or to the user that runs \(program) (\(geteuid()))")
        }
        if status.st_mode & 0o002 != 0 {
            warnings.append("all users can write to the password file \(path): chmod o-rw")
        } else if status.st_mode & 0o004 != 0 {
            warnings.append("all users can read the password file \(path): chmod o-r")
        }
        if status.st_mode & 0o022 == 0o020 {
            warnings.append(
                "the group with gid \(status.st_gid) can write to the password file \(path): chmod g-w")
        }
        return warnings
    }
}
