import LarderPlatform

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
