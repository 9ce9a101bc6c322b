import LarderPlatform
import LarderTestSupport

/// A `larderweb` process on its own Unix-domain socket. It is killed when the last reference is released.
final class WebProcess {
    let process: ChildProcess
    let socketPath: String
    /// The address that it reports in its log.
    let address: String
    private let place: TemporaryDirectory

    struct Reply {
        let status: Int
        /// Each header as `name: value`, with the name in lower case.
        let headers: [String]
        let body: String

        func header(_ name: String) -> String? {
            headers.first { $0.hasPrefix(name + ": ") }.map { String($0.dropFirst(name.count + 2)) }
        }
    }

    /// Starts larderweb and waits until it serves.
    /// - Parameters:
    ///   - daemonSocket: the path of the daemon's socket, which need not exist.
    ///   - options: options in addition to `--socket`, `--listen` and `--history none`.
    ///   - listen: the address to listen on, instead of the socket.
    init(_ daemonSocket: String, _ options: [String] = [], listen: String? = nil, wrapper: [String] = []) throws {
        place = try TemporaryDirectory(inMemory: true)
        socketPath = place.path + "/web"
        let history = options.contains("--history") ? [] : ["--history", "none"]
        let command =
            wrapper + [try DaemonProcess.program("larderweb"), "--socket", daemonSocket]
            + ["--listen", listen ?? "unix:" + socketPath] + history + options
        process = try ChildProcess(command[0], Array(command.dropFirst()))
        let line = try process.waitForErrorLine(containing: " serves ")
        address = String(line.split(separator: " ").last { $0.hasPrefix("http") || $0.hasPrefix("unix:") } ?? "")
    }

    deinit { process.killNow() }

    /// Sends SIGTERM, and waits until the process exits.
    func stop() throws -> ProcessEnd {
        process.send(signal: SIGTERM)
        return try process.waitForExit()
    }

    /// Runs larderweb until it exits, for calls that do not serve.
    static func run(_ arguments: [String]) throws -> (end: ProcessEnd, output: String, errors: String) {
        try ChildProcess.run(try DaemonProcess.program("larderweb"), arguments)
    }

    // MARK: Requests

    func get(_ path: String, _ headers: [String] = [], host: String? = "localhost") throws -> Reply {
        try send("GET \(path) HTTP/1.1", (host.map { ["Host: \($0)"] } ?? []) + headers)
    }

    /// Sends a POST request with the headers of larderweb's own pages, unless others are given.
    func post(
        _ path: String, _ body: String, type: String? = "application/json", origin: String? = "http://localhost",
        site: String? = "same-origin", _ headers: [String] = []
    ) throws -> Reply {
        var all = ["Host: localhost", "Content-Length: \(body.utf8.count)"] + headers
        if let type { all.append("Content-Type: " + type) }
        if let origin { all.append("Origin: " + origin) }
        if let site { all.append("Sec-Fetch-Site: " + site) }
        return try send("POST \(path) HTTP/1.1", all, body)
    }

    /// Sends a request on a new connection.
    func send(_ line: String, _ headers: [String], _ body: String = "") throws -> Reply {
        let head = ([line] + headers + ["Connection: close"]).map { $0 + "\r\n" }.joined() + "\r\n"
        return try exchange(Array((head + body).utf8))
    }

    /// Sends bytes, and receives until the connection is closed. Without a response, the status is 0.
    func exchange(_ bytes: [UInt8]) throws -> Reply {
        let client = try SocketClient(socketPath)
        try client.send(bytes)
        return Self.reply(try client.receiveToEnd())
    }

    static func reply(_ bytes: [UInt8]) -> Reply {
        let text = String(decoding: bytes, as: UTF8.self)
        // In Swift CR LF is one character.
        let parts = text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
        let lines = (parts.first ?? "").split(separator: "\r\n").map(String.init)
        let status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        let headers = lines.dropFirst().map { line in
            let colon = line.firstIndex(of: ":") ?? line.endIndex
            return line[..<colon].lowercased() + line[colon...]
        }
        return Reply(status: status, headers: headers, body: parts.count > 1 ? String(parts[1]) : "")
    }
}

/// Programs that tests run in addition to larderweb.
enum WebTools {
    static let programs = PackageRoot.path + "/Tests/LarderwebTests/Programs"

    static func path(_ program: String) -> String? {
        guard let (end, output, _) = try? ChildProcess.run("sh", ["-c", "command -v \"$0\"", program]),
            end == .exited(0)
        else { return nil }
        return String(output.prefix { $0 != "\n" })
    }
}
