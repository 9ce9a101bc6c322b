import LarderClient
import LarderCommandCatalog
import LarderPlatform
import LarderRESP

/// The shell for standard input that is not a terminal. Each line is a command, and the replies are written in order.
///
/// Its memory does not grow with the number of lines. Commands are pipelined only with `--keep-going`; otherwise each
/// command is sent after the reply to the previous one, because an error stops the shell.
final class BatchShell {
    private static let commandsMax = 512
    private static let bytesMax = 1 << 20

    private let context: Context
    private let keepsGoing: Bool
    private let session: ShellSession
    private let reader = LineReader(STDIN_FILENO, name: "standard input")
    private var waiting: [(line: Int, words: [[UInt8]])] = []
    private var waitingBytes = 0
    private var hasFailed = false

    init(_ context: Context, keepsGoing: Bool) throws {
        (self.context, self.keepsGoing) = (context, keepsGoing)
        session = ShellSession(try context.options.connect())
    }

    /// - Throws: ``Failure`` for the line whose error has stopped the shell.
    func run() throws -> ExitCode {
        while true {
            // Do not wait for more lines while commands are pending, because another program may wait for their replies
            // before it sends the next line.
            if !reader.hasLine { try send() }
            guard let line = try reader.next({ Array($0) }) ?? reader.takeHalfLine() else { break }
            guard try take(line) else { break }
        }
        try send()
        return hasFailed ? .notFound : .done
    }

    /// Handles a line.
    /// - Returns: false if the line ends the shell.
    private func take(_ line: [UInt8]) throws -> Bool {
        guard let words = InlineWords.words(of: line) else {
            try send()
            try fail(reader.number, "usage", "quotes do not match, or a space is missing after one")
            return true
        }
        guard let first = words.first, first.first != UInt8(ascii: "#") else { return true }
        let name = String(decoding: first, as: UTF8.self).lowercased()
        if name == "exit" || ShellSession.effect(words) == .closes { return false }
        let stream = "this command runs until it is stopped: use larderctl subscribe, watch, monitor or query"
        if let reason = ShellSession.effect(words) == .streams ? stream : ShellSession.refusal(words) {
            try send()
            try fail(reader.number, "usage", reason)
            return true
        }
        // Only commands that do not change the state of the connection are pipelined.
        let isPlain = keepsGoing && [.none, .names].contains(ShellSession.effect(words))
        if !isPlain { try send() }
        waiting.append((reader.number, words))
        waitingBytes += line.count
        if !isPlain || waiting.count >= Self.commandsMax || waitingBytes >= Self.bytesMax { try send() }
        return true
    }

    /// Sends the pending commands, and writes their replies.
    private func send() throws {
        defer {
            waiting.removeAll(keepingCapacity: true)
            waitingBytes = 0
        }
        if let first = waiting.first {
            let replies: [RESPValue]
            do throws(LarderClientError) {
                replies = try session.run(waiting.map(\.words))
            } catch {
                let failure = Failure(error)
                throw Failure(
                    code: failure.code, message: failure.message,
                    exitCode: error.code == .invalidArgument ? .notFound : failure.exitCode, line: first.line)
            }
            for (command, reply) in zip(waiting, replies) { try write(reply, command.line, command.words) }
        }
        if reader.hasLine { try context.output.flushIfLarge() } else { try context.output.flush() }
    }

    private func write(_ reply: RESPValue, _ line: Int, _ words: [[UInt8]]) throws {
        if let text = reply.errorMessage { return try fail(line, "server", text) }
        context.show(FieldText.json(reply, to: words)) { output in
            if reply.isNull { output.line("") } else { PlainReply.write(reply, to: output) }
        }
        try context.output.flushIfLarge()
    }

    private func fail(_ line: Int, _ code: String, _ message: String) throws {
        // Also write an error object to standard output, so that each command has one line there.
        if context.options.json, keepsGoing { context.output.json(["error": message]) }
        // Flush the replies of previous commands before the error is written.
        try context.output.flush()
        let failure = Failure(code: code, message: message, exitCode: .notFound, line: line)
        guard keepsGoing else { throw failure }
        hasFailed = true
        failure.show(asJSON: context.options.json)
    }
}
