import CLarderLevelDBFiles
import LarderEngine
import LarderPlatform
import LarderServer
import Synchronization

#if LARDER_JEMALLOC
    import CLarderAllocator
#endif

/// The program larderd: parses its command line, then serves, purges or checks.
@main enum Daemon {
    static func main() {
        if let complaint = Program.commandLineComplaint {
            complain(complaint)
            exit(ExitCode.usage)
        }
        exit(run(Array(CommandLine.arguments.dropFirst())))
    }

    /// - Returns: the exit code.
    private static func run(_ arguments: [String]) -> Int32 {
        guard StandardDescriptors.fill() else { return ExitCode.failed }
        // Take the passed socket before opening files, because a wrong descriptor number could refer to such a file.
        let socket = Result { () throws(PassedSocket.Failure) in try PassedSocket.take() }
        let service = ServiceManager.take()
        ProcessSettings.ignoreWriteSignals()
        ProcessSettings.ignoreUserSignals()
        larder_leveldb_explain_bus_errors()
        let options: DaemonCommandLine
        do throws(UsageError) {
            options = try DaemonCommandLine(arguments)
        } catch {
            service?.fail(error.description)
            complain(error.description, hint: error.isOfFile ? nil : "Try: larderd --help")
            return ExitCode.usage
        }
        switch options.action {
        case .help:
            Output.write(help)
            return Output.finish(ExitCode.done)
        case .version:
            Output.write("larderd \(Version.text)\n")
            return Output.finish(ExitCode.done)
        case .checkConfiguration:
            Output.write(
                options.hasReadFile
                    ? "\(options.filePath ?? ""): no errors\n"
                    : "\(options.filePath ?? ""): no such file (it is optional)\n")
            return Output.finish(ExitCode.done)
        case .purge(let what): return Output.finish(Purge.run(what, options))
        case .check(let name): return Output.finish(Check.run(name, options))
        case .serve: return serve(options, socket, service)
        }
    }

    private static var optionHelp: String {
        DaemonOption.groups.map { DaemonOption.Row.helpLines($0.map(\.row)).joined(separator: "\n") }
            .joined(separator: "\n\n")
    }

    /// The text of `larderd --help`.
    private static var help: String {
        """
        larderd \(Version.text): \(DaemonHelp.summary).

        usage: \(DaemonHelp.synopsis.joined(separator: "\n       "))

        \(optionHelp)

        \(DaemonHelp.values.joined(separator: "\n"))

        \(DaemonHelp.signals.joined(separator: "\n"))

        exit codes:
        \(DaemonHelp.exitCodes.map { "  \($0.code)  \($0.meaning)" }.joined(separator: "\n"))

        """
    }

    private static func serve(
        _ options: DaemonCommandLine, _ socket: Result<PassedSocket?, PassedSocket.Failure>, _ service: ServiceManager?
    ) -> Int32 {
        let log = Log(least: options.logLevel, format: options.logFormat)
        defer { log.flush() }
        if !Allocator.startBackgroundThread() {
            log.warning("cannot start the allocator's thread: free memory is returned to the system later")
        }
        log.debug("allocator: \(Allocator.name)")
        let fail = { @Sendable (failure: Server.Failure) -> Int32 in
            log.error(failure.description)
            service?.fail(failure.description)
            return ExitCode.of(failure)
        }
        do throws(Server.Failure) {
            var configuration = options.configuration
            do throws(PassedSocket.Failure) {
                configuration.passedSocket = try socket.get()
            } catch {
                throw .socket(error.description)
            }
            configuration.engine.onReplayFailure = { error in
                let code = fail(.larder(error))
                log.flush()
                _exit(code)
            }
            try Server.run(configuration, log: log, commandLine: options, service: service)
            return ExitCode.done
        } catch {
            return fail(error)
        }
    }

    /// Writes to standard error, each line prefixed with the program's name.
    static func complain(_ text: String, hint: String? = nil) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            // Escape control characters: the text may contain parts of a file, which must not control the terminal.
            "larderd: " + LogFormat.clean(String(line))
        }
        let bytes = Array(((lines + [hint].compactMap { $0 }).joined(separator: "\n") + "\n").utf8)
        _ = write(STDERR_FILENO, bytes, bytes.count)
    }
}

/// The meaning of larderd's exit codes; `--help` lists them.
enum ExitCode {
    static let done: Int32 = 0
    /// An error of the larder, the socket or the disk, or a system limit that is too low.
    static let failed: Int32 = 1
    /// The command line or the configuration file is wrong, or there is no larder to check.
    static let usage: Int32 = 2
    /// The larder or the socket is in use by another process.
    static let held: Int32 = 3
    /// The database to purge or to check does not exist, or there is no larder to purge.
    static let noDatabase: Int32 = 4
    /// A check has found problems. This exit code and the next two mean the same in larderctl.
    static let wrong: Int32 = 8
    /// All problems that a check has found were repaired.
    static let repaired: Int32 = 9
    /// A check could not examine the larder, or a part of the larder.
    static let blind: Int32 = 10

    static func of(_ failure: Server.Failure) -> Int32 {
        switch failure {
        case .larder(let error): error.code == .larderHeld ? held : failed
        case .socketPath: usage
        case .socketTaken: held
        case .socket, .descriptors, .threads: failed
        }
    }
}

/// Writes requested text, such as the help, to standard output. Thread-safe.
enum Output {
    private static let failure = Atomic<Int32>(0)

    /// Writes the whole text, without a buffer.
    static func write(_ text: String) {
        do throws(FileError) {
            try FileSystem.writeAll(Array(text.utf8), descriptor: STDOUT_FILENO, path: "standard output")
        } catch {
            failure.store(error.number, ordering: .relaxed)
        }
    }

    /// Returns `code`, or the exit code of a failure if the output could not be written.
    static func finish(_ code: Int32) -> Int32 {
        let number = failure.load(ordering: .relaxed)
        guard number != 0 else { return code }
        Daemon.complain("cannot write to standard output: \(SystemErrorText.of(number))")
        return code == ExitCode.done ? ExitCode.failed : code
    }
}

/// The memory allocator of this process: jemalloc, or the system's.
private enum Allocator {
    /// Starts the thread that returns free memory to the system.
    /// - Returns: false if that failed.
    static func startBackgroundThread() -> Bool {
        #if LARDER_JEMALLOC
            larder_allocator_start_thread()
        #else
            true
        #endif
    }

    /// The allocator's name for the log: memory figures depend on the allocator.
    static var name: String {
        #if LARDER_JEMALLOC
            "jemalloc " + String(cString: larder_allocator_version())
        #else
            "the system's allocator"
        #endif
    }
}
