import LarderPlatform

/// The access rights of the daemon's socket: its mode and its group.
package struct SocketAccess: Equatable, Sendable {
    private var given: mode_t?
    /// Nil for the group of the process.
    package var group: gid_t?

    package init() {}

    /// 0600; 0660 if a group is named.
    package var mode: mode_t {
        get { given ?? (group == nil ? 0o600 : 0o660) }
        set { given = newValue }
    }

    /// Whether only the owner may connect.
    package var isPrivate: Bool { mode & 0o066 == 0 }

    package var modeText: String { String(mode, radix: 8) }

    /// The mode of a directory that gives the same users access to the socket.
    package var directoryMode: mode_t { 0o700 | (mode & 0o060 == 0 ? 0 : 0o050) | (mode & 0o006 == 0 ? 0 : 0o055) }

    /// Why the group, or other users, cannot reach a socket in a directory; nil if they can.
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
