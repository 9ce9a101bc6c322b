// Checks which user's process listens at a socket's path, before any byte is sent to it, in particular the password.

import LarderPlatform

/// Decides which daemons are trusted.
///
/// The system reports the user of the listening process (`SO_PEERCRED`, `getpeereid`), which cannot be faked. The
/// process is trusted if that user is
/// - root, or this process's own user;
/// - one of ``trustedUsers``;
/// - a user who owns the socket, or a directory above it. All directories further up must belong to root or to this
///   process's own user, and be writable only by their owners. Then only root or this process's own user can have given
///   that location to the daemon's user. An example is `/run/larder` of a system daemon that runs as the user `larder`.
///   Nothing in `/tmp` qualifies, because any user can create a directory there.
package struct PeerTrust: Sendable {
    /// User IDs that are trusted at any socket path.
    package var trustedUsers: Set<UInt32>

    package init(trustedUsers: Set<UInt32> = []) { self.trustedUsers = trustedUsers }

    /// Metadata of a file.
    struct Entry {
        var owner: UInt32
        /// Whether users other than its owner can write to it.
        var isWritableByOthers = false
        /// The target of a symbolic link; nil for anything else.
        var target: String?
    }

    private static let linksMax = 32

    /// Returns why a peer is not trusted; nil if it is.
    /// - Parameters:
    ///   - peer: the user of the listening process.
    ///   - path: the absolute path of the socket.
    ///   - look: returns the metadata of a path without following symbolic links; nil if it is unknown.
    func objection(to peer: UInt32, own: UInt32, path: String, look: (String) -> Entry?) -> String? {
        if peer == 0 || peer == own || trustedUsers.contains(peer) { return nil }
        guard let problem = problem(peer, own, path, look) else { return nil }
        return
            "the process that answers at \(path) runs as user \(peer), who is neither root nor the user of this process "
            + "(\(own)), and \(problem): nothing was sent. To trust that user, set "
            + "ClientOptions.trustedUsers, or use: larderctl --trust-user \(peer)"
    }

    /// Returns why root or the own user cannot have given the socket's location to the peer; nil if they can.
    private func problem(_ peer: UInt32, _ own: UInt32, _ path: String, _ look: (String) -> Entry?) -> String? {
        var rest = path.split(separator: "/").map(String.init)[...]
        var directory = "/"
        var links = 0
        guard let root = look("/"), root.owner == 0 || root.owner == own else { return "/ belongs to another user" }
        if root.isWritableByOthers { return "other users can write to /" }
        while let name = rest.popFirst() {
            if name == "." { continue }
            if name == ".." {
                directory = Self.parent(directory)
                continue
            }
            let place = directory == "/" ? "/" + name : directory + "/" + name
            guard let entry = look(place) else { return "\(place) cannot be checked" }
            if let target = entry.target {
                links += 1
                guard links <= Self.linksMax else { return "\(path) has too many symbolic links" }
                rest = target.split(separator: "/").map(String.init) + rest
                if target.hasPrefix("/") { directory = "/" }
                continue
            }
            // The owner of the parent directories has given this location to the peer.
            if entry.owner == peer { return nil }
            guard entry.owner == 0 || entry.owner == own else { return "\(place) belongs to user \(entry.owner)" }
            if rest.isEmpty { return "\(place) belongs to user \(entry.owner)" }
            if entry.isWritableByOthers { return "other users can write to \(place)" }
            directory = place
        }
        return "\(path) is a directory"
    }

    private static func parent(_ path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
        return String(path[..<slash])
    }

    // MARK: System calls

    /// Checks the user of the process at the other end of a connected socket.
    package func check(_ descriptor: CInt, _ path: String) throws(WireFailure) {
        guard let peer = UnixSocket.peerUser(descriptor) else { throw WireFailure(.system("SO_PEERCRED", errno)) }
        let absolute = path.hasPrefix("/") ? path : Self.workingDirectory() + "/" + path
        if let objection = objection(to: peer, own: geteuid(), path: absolute, look: Self.look) {
            throw WireFailure(.untrusted(objection))
        }
    }

    private static func workingDirectory() -> String {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        guard getcwd(&path, path.count) != nil else { return "" }
        return String(decoding: path.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private static func look(_ path: String) -> Entry? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        var entry = Entry(owner: status.st_uid)
        if status.st_mode & S_IFMT == S_IFLNK {
            var target = [CChar](repeating: 0, count: Int(PATH_MAX))
            let count = readlink(path, &target, target.count)
            guard count > 0, count < target.count else { return nil }
            entry.target = String(decoding: target[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        } else {
            entry.isWritableByOthers = status.st_mode & (S_IWGRP | S_IWOTH) != 0
        }
        return entry
    }
}
