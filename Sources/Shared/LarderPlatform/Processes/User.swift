package enum User {
    // The size of the buffer for one entry of the user database: 64 KiB, far more than an entry usually needs.
    private static let bufferBytes = 1 << 16

    /// Returns the numeric ID of the user with this name; nil if there is none.
    package static func number(of name: String) -> uid_t? { numbers(of: name)?.user }

    private static func numbers(of name: String) -> (user: uid_t, group: gid_t)? {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: bufferBytes)
        guard getpwnam_r(name, &entry, &buffer, buffer.count, &found) == 0, found != nil else { return nil }
        return (entry.pw_uid, entry.pw_gid)
    }

    /// Returns the name of the user with this numeric ID; nil if there is none. May query a directory service.
    package static func name(of number: uid_t) -> String? {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: bufferBytes)
        guard getpwuid_r(number, &entry, &buffer, buffer.count, &found) == 0, found != nil, let name = entry.pw_name
        else { return nil }
        return String(cString: name)
    }

    /// Returns all groups of a user, the primary group first. May query a directory service.
    package static func groups(of name: String) -> [gid_t] {
        guard let group = numbers(of: name)?.group else { return [] }
        #if os(Linux)
            var groups = [gid_t](repeating: 0, count: groupsMax)
            let own = group
        #else
            var groups = [Int32](repeating: 0, count: groupsMax)
            let own = Int32(bitPattern: group)
        #endif
        var count = Int32(groups.count)
        guard getgrouplist(name, own, &groups, &count) >= 0 else { return [group] }
        return groups.prefix(Int(count)).map { gid_t(truncatingIfNeeded: $0) }
    }

    private static let groupsMax = 4096

    /// The names of all users in `/etc/passwd`, for suggestions after a misspelling; empty if it cannot be read.
    package static var localNames: [String] { names(inFile: "/etc/passwd") }

    /// Returns the first field of each line of `/etc/passwd` or `/etc/group`; empty if the file cannot be read.
    static func names(inFile path: String) -> [String] {
        guard let bytes = (try? FileSystem.read(path)) ?? nil else { return [] }
        return bytes.split(separator: 0x0A).map { String(decoding: $0.prefix { $0 != 0x3A }, as: UTF8.self) }
    }
}

package enum Group {
    package static func number(of name: String) -> gid_t? {
        var entry = group()
        var found: UnsafeMutablePointer<group>?
        // 1 MiB, because the call also stores the names of the group's members.
        var buffer = [CChar](repeating: 0, count: 1 << 20)
        guard getgrnam_r(name, &entry, &buffer, buffer.count, &found) == 0, found != nil else { return nil }
        return entry.gr_gid
    }

    /// Returns the name of the group with this number; nil if there is none. May query a directory service.
    package static func name(of number: gid_t) -> String? {
        var entry = group()
        var found: UnsafeMutablePointer<group>?
        var buffer = [CChar](repeating: 0, count: 1 << 20)
        guard getgrgid_r(number, &entry, &buffer, buffer.count, &found) == 0, found != nil, let name = entry.gr_name
        else { return nil }
        return String(cString: name)
    }

    /// The names of all groups in `/etc/group`, for suggestions after a misspelling; empty if it cannot be read.
    package static var localNames: [String] { User.names(inFile: "/etc/group") }
}

/// The user namespace of this process: user_namespaces(7).
package enum UserNamespace {
    /// The ID that stands for all users and groups that the namespace does not know.
    package static var unmappedID: UInt32 {
        fields(of: "/proc/sys/kernel/overflowgid").first.flatMap { UInt32($0) } ?? 65_534
    }

    /// Whether the process is in another namespace than that of the system, which knows all users.
    package static var isOwn: Bool {
        let map = fields(of: "/proc/self/uid_map")
        return !map.isEmpty && map != ["0", "0", "4294967295"]
    }

    private static func fields(of path: String) -> [String] {
        let bytes = ((try? FileSystem.read(path)) ?? nil) ?? []
        return String(decoding: bytes, as: UTF8.self).split { $0 == " " || $0 == "\n" }.map(String.init)
    }
}
