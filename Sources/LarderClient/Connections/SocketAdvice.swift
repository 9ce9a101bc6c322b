import LarderPlatform
import LarderVocabulary

/// Explains why a daemon's socket cannot be used. Each text ends with the command that helps.
enum SocketAdvice {
    static func noDaemon(_ path: String) -> String {
        // A service manager that runs the daemon as root would not see one that this user starts.
        let isService = path == DefaultSocket.system && geteuid() != 0
        if isService, FileSystem.isDirectory("/run/systemd/system") {
            return "no daemon answers at \(path): start the service with: sudo systemctl start larderd"
        }
        // In a container.
        let other = isService ? "start the container that shares this directory, or " : ""
        return "no daemon answers at \(path): \(other)start one with: larderd --socket \(ShellWord.quoted(path))"
    }

    static func notASocket(_ path: String) -> String {
        "\(path) is not a socket: no daemon can answer there; start one at another path with: larderd --socket PATH"
    }

    /// The text for a socket that this process has no permission to use.
    static func noPermission(_ path: String) -> String {
        let user = User.name(of: geteuid()) ?? "\(geteuid())"
        let place = closedDirectory(above: path) ?? path
        let isDirectory = place != path
        let action = isDirectory ? "enter the directory" : "use the socket"
        var status = stat()
        guard stat(place, &status) == 0 else {
            return "the user \(user) may not \(action) \(place): see its rights with: ls -ld \(ShellWord.quoted(place))"
        }
        let owner = User.name(of: status.st_uid) ?? "\(status.st_uid)"
        let named = Group.name(of: status.st_gid)
        let group = named ?? "\(status.st_gid)"
        let mode = String(status.st_mode & 0o777, radix: 8)
        let facts = "the user \(user) may not \(action) \(place) (owner \(owner), group \(group), mode \(mode)): "
        if status.st_gid == UserNamespace.unmappedID, UserNamespace.isOwn {
            return facts
                + "its group is not known in this user namespace. Run the programs in one user namespace, or let "
                + "all users use the socket: larderd --socket-mode 666"
        }
        if status.st_gid != 0, status.st_mode & (isDirectory ? S_IXGRP : S_IWGRP) != 0 {
            // In a container, groups may have no name, and can be joined only when a program starts.
            let canJoin = named != nil && FileSystem.exists("/usr/sbin/usermod")
            return facts
                + (canJoin
                    ? "join the group, and log in again: sudo usermod -aG \(group) \(user)"
                    : "run the program with this group, for example with: docker run --group-add \(status.st_gid), "
                        + "or: setpriv --groups \(status.st_gid)")
        }
        let (own, quoted) = (Group.name(of: getegid()) ?? "\(getegid())", ShellWord.quoted(place))
        // The daemon gives its group only to a directory that it creates.
        if isDirectory {
            return facts + "let a group enter it: sudo chgrp \(own) \(quoted) && sudo chmod g+x \(quoted)"
        }
        return facts + "restart the daemon with a group that may use it: larderd --socket-group \(own)"
    }

    /// Returns the first directory above a path that this process may not enter; nil if it may enter all.
    private static func closedDirectory(above path: String) -> String? {
        var directory = path.hasPrefix("/") ? "" : "."
        for name in path.split(separator: "/").dropLast() {
            directory += "/" + name
            if faccessat(AT_FDCWD, directory, X_OK, AT_EACCESS) != 0 { return directory }
        }
        return nil
    }
}
