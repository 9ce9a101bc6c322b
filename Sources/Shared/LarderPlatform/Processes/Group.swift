/// Groups of users.
package enum Group {
    /// Returns the number of the group with this name; nil if there is none.
    package static func number(of name: String) -> gid_t? {
        var entry = group()
        var found: UnsafeMutablePointer<group>?
        // Enough for large groups: the call also returns their members.
        var buffer = [CChar](repeating: 0, count: 1 << 20)
        guard getgrnam_r(name, &entry, &buffer, buffer.count, &found) == 0, found != nil else { return nil }
        return entry.gr_gid
    }

    /// The names of all groups of the system's own file, for suggestions; empty if it cannot be read.
    package static var localNames: [String] { User.names(inFile: "/etc/group") }
}
