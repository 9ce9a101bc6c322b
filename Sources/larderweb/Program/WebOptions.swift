import LarderServices
import LarderVocabulary

/// larderweb's command line, parsed.
struct WebOptions {
    enum Action {
        case serve, help, version, manual
        /// Print the completion for a shell.
        case completion(String)
    }

    var action = Action.serve
    var listen = ListenAddress.network(host: "127.0.0.1", port: 8377)
    var socketAccess = SocketAccess()
    var token: [UInt8]?
    var hosts: Set<String> = []
    var allowsChanges = false
    /// Whether the last day's figures are stored on the disk.
    var keepsHistory = true
    /// The directory of the larder for these figures; nil for the default.
    var historyDirectory: String?
    var limits = HTTPServer.Limits()
    var socketPath: String?
    var password: String?
    /// The path of the password file; empty for none.
    var passwordPath = ""
    var trustedUsers: Set<UInt32> = []
    var logLevel = Log.Level.info
    var logFormat = LogFormat.automatic

    /// Parses the words after the program's name.
    init(_ words: [String]) throws(UsageError) {
        var rest = words[...]
        while let word = rest.popFirst() {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let name = parts[0] == "-h" ? "--help" : parts[0] == "-V" ? "--version" : parts[0]
            guard let option = WebOption.all.first(where: { $0.name == name }) else { throw Self.unknown(name) }
            var text = parts.count == 2 ? parts[1] : nil
            if option.value == nil {
                guard text == nil else { throw UsageError("\(name) takes no value") }
            } else {
                text = text ?? rest.popFirst()
                guard let text, !text.isEmpty else {
                    throw UsageError("\(name) needs a value: \(name) \(option.value ?? "")")
                }
            }
            do {
                try option.take(&self, text ?? "")
            } catch {
                throw error as? UsageError ?? UsageError("\(name): \(error)")
            }
            // An option such as `--help` ends the parsing: later words are not checked.
            guard case .serve = action else { return }
        }
        if socketAccess.group != nil, case .network = listen {
            throw UsageError("--socket-group needs --listen unix:/path")
        }
        guard listen.isLocal || token != nil else {
            throw UsageError("--listen: other machines can reach this address: use --token-file, or 127.0.0.1")
        }
    }

    private static func unknown(_ name: String) -> UsageError {
        guard name.hasPrefix("-") else {
            return UsageError("unexpected word '\(printableKey(name.utf8))': larderweb takes only options")
        }
        let near = Suggestion.text(for: name, among: WebOption.all.map(\.name))
        return UsageError("unknown option \(printableKey(name.utf8))\(near)")
    }
}
