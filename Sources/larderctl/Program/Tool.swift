// From the words of the command line to an exit code.

import CommandCatalog
import LarderClient

/// The program.
enum Tool {
    /// Carries out one command line, errors to standard error.
    static func run(_ words: [[UInt8]]) -> ExitCode {
        do {
            let output = Output()
            let code = try perform(words, output)
            try output.flush()
            return code
        } catch let error as UsageError {
            let help = error.verb.map { "larderctl help \($0)" } ?? "larderctl help"
            return fail(.usage, "\(error.message)\n(see: \(help))")
        } catch let error as InputOutputError {
            return fail(.inputOutput, error.message)
        } catch let error as DamagedBackup {
            return fail(.damaged, error.message)
        } catch let error as CannotLook {
            return fail(.unseen, error.message)
        } catch let error as RedisError {
            return fail(error.isAnswer ? .serverError : .noDaemon, error.message)
        } catch let error as LarderClientError {
            return fail(exitCode(for: error), text(of: error))
        } catch {
            return fail(.serverError, "\(error)")
        }
    }

    private static func perform(_ words: [[UInt8]], _ output: Output) throws -> ExitCode {
        let (options, rest) = try Options.parse(words)
        if options.showsVersion {
            output.line("larderctl \(Version.text)")
            return .done
        }
        guard let first = rest.first else {
            if options.showsHelp {
                output.line(Help.overview)
                return .done
            }
            throw UsageError("a verb is missing\n" + Help.usage)
        }
        let name = String(decoding: first, as: UTF8.self)
        let arguments = Array(rest.dropFirst())
        if options.showsHelp { return try Help.show([first], output) }
        if name == "help" { return try Help.show(arguments, output) }
        if let verb = Verb.all.first(where: { $0.name == name }) {
            return try perform(verb, arguments, options, output)
        }
        guard let command = CommandMetadata.named(name) else {
            throw UsageError("'\(printableKey(first))' is neither a verb nor a command" + Verb.suggestion(for: name))
        }
        return try Raw.run(command, [first] + arguments, Context(options: options, output: output))
    }

    private static func perform(_ verb: Verb, _ words: [[UInt8]], _ options: Options, _ output: Output) throws
        -> ExitCode
    {
        let (arguments, options) = try verb.parse(words, options)
        if options.showsHelp { return try Help.show([Array(verb.name.utf8)], output) }
        return try verb.run(arguments, Context(options: options, output: output))
    }

    // MARK: Errors

    private static func fail(_ code: ExitCode, _ message: String) -> ExitCode {
        Output.standardError("larderctl: " + message + "\n")
        return code
    }

    private static func exitCode(for error: LarderClientError) -> ExitCode {
        switch error.code {
        case .server: .serverError
        case .invalidArgument, .recursion: .usage
        case .locked: .noValue
        case .lockLost: .lockLost
        default: .noDaemon
        }
    }

    private static func text(of error: LarderClientError) -> String {
        switch error.code {
        case .server: error.serverText ?? error.message
        case .noDaemon, .untrusted, .timeout, .io, .invalidArgument: error.message
        case .locked, .lockLost: [error.key, error.message].compactMap { $0 }.joined(separator: ": ")
        default: error.description
        }
    }
}
