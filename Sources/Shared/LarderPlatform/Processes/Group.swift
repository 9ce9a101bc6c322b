/// Groups of users.
package enum Group {
    /// Returns the number of the group with this name; nil if there is none.
    package static func number(of name: String) -> gid_t? {
        var entry = group()
        var found: UnsafeMutablePointer<group>?
        // 1 MiB, because the call also stores the names of the group's members.
        var buffer = [CChar](repeating: 0, count: 1 << 20)
        guard getgrnam_r(name, &entry, &buffer, buffer.count, &found) == 0, found != nil else { return nil }
        return entry.gr_gid
    }

    /// The names of all groups in `/etc/group`, for suggestions after a misspelling; empty if it cannot be read.
    package static var localNames: [String] { User.names(inFile: "/etc/group") }
}
