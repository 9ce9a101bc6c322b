import LarderBackup
import LarderClient
import LarderPlatform
import LarderRESP

extension Verb {
    static let backup = Verb(
        "backup", "DIRECTORY", "back up the whole larder while it is in use",
        details: """
            The daemon creates a backup in DIRECTORY, which is created if it is missing: all databases and functions at
            one instant. Each backup is a directory named by its time, such as 20261123T061500Z. Tables that are
            unchanged since the previous backup are hard-linked from it; others are hard-linked from the larder if they
            are on the same file system, otherwise copied. Prints the backup's path, and on standard error its size and
            problems of previous backups; with --json, all in one line:
            {"path":…,"files":…,"bytes":…,"newBytes":…,"milliseconds":…,"warnings":[…]}.
            An interrupted backup leaves no incomplete backup; the daemon completes it even if larderctl is terminated.
            """,
        argumentCount: 1...1
    ) { arguments, context in
        let directory = FileSystem.absolute(try path(arguments.words[0]))
        let client = try context.options.connect()
        let result = try LongCall.run(client, ["BACKUP", directory], field: "backup", context).checked("backup")
        guard let path = result.field("path")?.bytes.map({ String(decoding: $0, as: UTF8.self) }) else {
            throw InputOutputError(message: "the daemon's reply is malformed")
        }
        let warnings = (result.field("warnings")?.elements ?? []).compactMap(\.string)
        func number(_ name: String) -> Int64 { result.field(name)?.int ?? 0 }
        guard isSeen(path) else {
            throw InputOutputError(
                message:
                    "the daemon created \(printableKey(Array(path.utf8))), which is not visible here: a systemd service has "
                    + "its own /tmp and /var/tmp. Use a directory below /var/lib/larder, which other processes can see")
        }
        context.show([
            "path": path, "files": number("files"), "bytes": number("bytes"), "newBytes": number("new-bytes"),
            "milliseconds": number("milliseconds"), "warnings": warnings,
        ]) { output in
            for warning in warnings { Output.standardError("larderctl: \(warning)\n") }
            Output.standardError(
                "larderctl: \(counted(number("files"), "file")), \(NumberText.bytes(number("bytes"))), of which "
                    + "\(NumberText.bytes(number("new-bytes"))) are new, in \(number("milliseconds")) ms\n")
            output.line(path)
        }
        return .done
    }

    /// Whether a path exists. Returns true if this user cannot check that.
    private static func isSeen(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 || errno != ENOENT
    }

    static let verify = Verb(
        "verify", "BACKUP", "check a backup and report problems",
        details: """
            BACKUP is a backup, or a directory of backups: then the newest one, even if it is damaged. No daemon is
            needed. Every file is read and compared with its recorded length and digest. Prints one line per problem,
            and exits with 8 if there is one. With --json: {"path":…,"files":…,"bytes":…,"problems":[…]}.
            """,
        argumentCount: 1...1
    ) { arguments, context in
        let progress = ProgressLine()
        defer { progress.end() }
        let (reader, problems) = try reporting {
            let reader = try BackupReader(try path(arguments.words[0]))
            return (reader, try reader.verify { progress.show(done: $0, total: $1) })
        }
        progress.end()
        context.show([
            "path": reader.directory, "files": reader.fileCount, "bytes": reader.byteCount, "problems": problems,
        ]) { output in
            for problem in problems { output.line(problem) }
            guard problems.isEmpty else { return }
            let size = "\(counted(reader.fileCount, "file")), \(NumberText.bytes(reader.byteCount))"
            output.line("\(reader.directory) is undamaged: \(size)")
        }
        return problems.isEmpty ? .done : .damaged
    }

    static let restore = Verb(
        "restore", "BACKUP DIRECTORY", "restore a backup to a new larder",
        details: """
            BACKUP is a backup, or a directory of backups: then the newest one, even if it is damaged. DIRECTORY, the
            new larder, must not exist, or be empty; start a daemon on it with larderd --dir DIRECTORY. All files are
            copied and checked before the directory gets its name. Exits with 8 if the backup is damaged. With --json:
            {"path":…,"files":…,"bytes":…}.
            """,
        argumentCount: 2...2, isUnlikeCommand: true
    ) { arguments, context in
        let place = FileSystem.absolute(try path(arguments.words[1]))
        let progress = ProgressLine()
        defer { progress.end() }
        let reader = try reporting {
            let reader = try BackupReader(try path(arguments.words[0]))
            try reader.restore(to: place) { progress.show(done: $0, total: $1) }
            return reader
        }
        progress.end()
        context.show(
            ["path": place, "files": reader.fileCount, "bytes": reader.byteCount],
            text: "\(place): \(counted(reader.fileCount, "file")), \(NumberText.bytes(reader.byteCount)), "
                + "from \(reader.directory)")
        return .done
    }

    /// Returns a path without trailing slashes.
    private static func path(_ word: [UInt8]) throws -> String {
        var path = try VerbArguments.path(word)
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        return path
    }

    private static func reporting<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as BackupError {
            switch error {
            case .damaged: throw Failure(code: "damaged", message: error.description, exitCode: .damaged)
            case .place, .noBackup: throw UsageError(error.description)
            case .io, .newerFormat: throw InputOutputError(message: error.description)
            }
        }
    }
}
