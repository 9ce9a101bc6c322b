import Origins

/// Where an origin is and who asks there. Has no secrets.
package struct OriginSource: Hashable, Sendable {
    package let url: String
    /// Nil for the user that the URL names, or the server's default one.
    package var user: String?
    /// The file whose first line is the password; nil for none.
    package var passwordPath: String?
}

/// What stands behind a database, as ORIGIN was told.
struct OriginSettings: Hashable, Sendable {
    /// How a write gets there.
    enum Writing: String, Sendable {
        /// The origin acknowledges before the daemon does, and the entry is kept here.
        case through = "THROUGH"
        /// The origin acknowledges before the daemon does, and what is here is forgotten.
        case around = "AROUND"
        /// The daemon acknowledges, and brings it to the origin later.
        case behind = "BEHIND"
    }

    let source: OriginSource
    let writing: Writing
    /// Whether GET and the like are answered from what is kept, within its grace, while the origin cannot be asked.
    let servesStale: Bool

    /// The words behind the name of a database in the larder's file.
    var words: [String] {
        [source.url, writing.rawValue] + (servesStale ? ["STALE"] : []) + (source.user.map { ["USER", $0] } ?? [])
            + (source.passwordPath.map { ["PASSWORDFILE", $0] } ?? [])
    }

    static let syntax = "ORIGIN url [THROUGH|AROUND|BEHIND] [STALE] [USER name] [PASSWORDFILE path] [DISCARD]"

    /// - Parameter words: of a client or of the file; the first is the URL.
    init(words: [String]) throws(CommandError) {
        guard let url = words.first, !words.contains(where: { $0.contains { $0.isWhitespace } || $0.isEmpty }) else {
            throw CommandError("ERR the words of an origin have no blanks: \(Self.syntax)")
        }
        var source = OriginSource(url: url)
        var writing: Writing?
        var servesStale = false
        var rest = words.dropFirst()
        while let word = rest.popFirst() {
            let name = word.uppercased()
            if let found = Writing(rawValue: name), writing == nil {
                writing = found
            } else if name == "STALE", !servesStale {
                servesStale = true
            } else if name == "USER", source.user == nil, let user = rest.popFirst() {
                source.user = user
            } else if name == "PASSWORDFILE", source.passwordPath == nil, let path = rest.popFirst() {
                guard path.hasPrefix("/") else {
                    throw CommandError("ERR the password's file is named by its whole path, such as /etc/larder/origin")
                }
                source.passwordPath = path
            } else {
                throw CommandError("ERR '\(word.prefix(32))' is not possible here: \(Self.syntax)")
            }
        }
        self.source = source
        self.writing = writing ?? .through
        self.servesStale = servesStale
    }

    /// A password in a command would be in logs and in the larder's files.
    func checkHasNoSecret() throws(CommandError) {
        guard (try? OriginAddress(source.url))?.password == nil else {
            throw CommandError(
                "ERR write the password into a file that only the daemon may read, and name it: PASSWORDFILE path")
        }
    }
}
