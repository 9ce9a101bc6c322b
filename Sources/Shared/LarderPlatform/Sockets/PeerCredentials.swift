/// The user, the groups and the process at the other end of a connected Unix-domain socket. The system reports them, so
/// the peer cannot forge them.
///
/// The values are those at the time of connecting. Later changes of the peer's user or groups are not visible.
package struct PeerCredentials: Sendable, Equatable {
    package var user: uid_t
    /// The peer's primary group, followed by its supplementary groups.
    package var groups: [gid_t]
    /// The peer's process number; 0 if the system does not report it.
    package var process: pid_t

    package init(user: uid_t, groups: [gid_t], process: pid_t = 0) {
        (self.user, self.groups, self.process) = (user, groups, process)
    }

    /// Reads the credentials of a socket's peer. Returns nil if the system does not report the user or the groups.
    package init?(of descriptor: Int32) {
        #if os(Linux)
            // Has the layout of C's `ucred` (process, user, group), which Swift's Glibc module lacks.
            var own: (pid_t, uid_t, gid_t) = (0, .max, .max)
            var length = socklen_t(MemoryLayout.size(ofValue: own))
            guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &own, &length) == 0, own.1 != .max else { return nil }
            guard let more = Self.supplementaryGroups(descriptor) else { return nil }
            self.init(user: own.1, groups: [own.2] + more, process: own.0)
        #else
            var credentials = xucred()
            var length = socklen_t(MemoryLayout<xucred>.size)
            guard getsockopt(descriptor, SOL_LOCAL, LOCAL_PEERCRED, &credentials, &length) == 0,
                credentials.cr_version == XUCRED_VERSION
            else { return nil }
            let count = max(0, min(Int(credentials.cr_ngroups), Int(NGROUPS)))
            let groups = withUnsafeBytes(of: &credentials.cr_groups) {
                Array($0.bindMemory(to: gid_t.self).prefix(count))
            }
            self.init(user: credentials.cr_uid, groups: groups)
        #endif
    }

    #if os(Linux)
        /// The option SO_PEERGROUPS (Linux 4.13 and later), which Swift's Glibc module lacks.
        private static let peerGroups: Int32 = 59
        /// The maximum number of supplementary groups in Linux.
        private static let groupsMax = 65_536

        private static func supplementaryGroups(_ descriptor: Int32) -> [gid_t]? {
            var count = 32
            while count <= groupsMax {
                var groups = [gid_t](repeating: .max, count: count)
                var length = socklen_t(count * MemoryLayout<gid_t>.size)
                if getsockopt(descriptor, SOL_SOCKET, peerGroups, &groups, &length) == 0 {
                    return Array(groups.prefix(Int(length) / MemoryLayout<gid_t>.size))
                }
                // The array was too short, and the kernel has set `length` to the required number of bytes.
                guard errno == ERANGE else { return nil }
                count = max(count * 2, Int(length) / MemoryLayout<gid_t>.size)
            }
            return nil
        }
    #endif
}
