/// The benchmark's command line: measures round by round, then reports.
enum Bench {
    private enum ExitCode {
        static let done: Int32 = 0
        static let incomplete: Int32 = 1
        static let usage: Int32 = 2
    }

    /// - Returns: the exit code.
    static func main(_ words: [String]) -> Int32 {
        let options: BenchOptions
        do throws(BenchError) {
            if words.first == FleetProgram.name {
                try FleetProgram.main(words.dropFirst())
                return ExitCode.done
            }
            if words.first == LibraryMemory.name {
                try LibraryMemory.main(words.dropFirst())
                return ExitCode.done
            }
            options = try BenchOptions(words)
        } catch {
            Progress.note("larderbench: \(error)\nTry: larderbench --help")
            return ExitCode.usage
        }
        if options.showsHelp {
            print(BenchOption.help, terminator: "")
            return ExitCode.done
        }
        if let socket = options.nullServerSocket { return NullServer.serve(socket) }
        Interruption.watch()
        do throws(BenchError) {
            return try run(options)
        } catch {
            Progress.note("larderbench: \(error)")
            return ExitCode.incomplete
        }
    }

    private static func run(_ options: BenchOptions) throws(BenchError) -> Int32 {
        try checkOutputs(options)
        let busy = try ProcessorLoad.check(options)
        let tree = try TemporaryTree(in: options.directory)
        defer { withExtendedLifetime(tree) {} }
        let begin = Clocks.monotonic()
        let facts = Machine.facts(options, tree)
        let results = Results()
        let isWhole = measure(suites(options, tree), options, into: results)
        let minutes = Decimal.text((Clocks.monotonic() - begin) / 60, digits: 1)
        let report = Report(
            facts: facts + [
                ("CPUs busy before", "\(busy) by other programs"), ("load after", Machine.loadAverage),
                ("took", "\(minutes) minutes"),
            ], results: results,
            targets: Target.all(options))
        print(report.text, terminator: "")
        if let path = options.jsonPath {
            do {
                try TextFile.write(try JSONReport(report).text(), to: path)
            } catch {
                throw BenchError("\(error)")
            }
        }
        if let path = options.pagePath { try ReportPage.write(report.summary, into: path) }
        return isWhole && results.failures.isEmpty ? ExitCode.done : ExitCode.incomplete
    }

    /// Checks that the results can be written, before a run that may take an hour.
    private static func checkOutputs(_ options: BenchOptions) throws(BenchError) {
        if let path = options.jsonPath { try TextFile.write("", to: path) }
        guard let path = options.pagePath else { return }
        guard let page = TextFile.read(path) else { throw .system("cannot read \(path)") }
        _ = try ReportPage.replacing(in: page, with: "")
    }

    /// Measures round by round.
    /// - Returns: false if the user interrupted; the results until then are valid.
    private static func measure(
        _ suites: [(BenchOptions.SuiteName, any Suite)], _ options: BenchOptions, into results: Results
    ) -> Bool {
        for round in 0..<options.roundCount {
            Progress.note("round \(round + 1) of \(options.roundCount)")
            for (name, suite) in suites where round < options.roundCount(of: name) {
                do throws(BenchError) {
                    try suite.runRound(round, into: results)
                } catch {
                    results.fail(Interruption.isRequested ? "the rest" : "\(name)", error)
                    if Interruption.isRequested { return false }
                }
            }
        }
        return true
    }

    private static func suites(_ options: BenchOptions, _ tree: TemporaryTree) -> [(BenchOptions.SuiteName, any Suite)]
    {
        BenchOptions.SuiteName.allCases.filter(options.suites.contains).map { name in
            let suite: any Suite =
                switch name {
                case .socket: SocketSuite(options, tree)
                case .steady: SteadySuite(options, tree)
                case .crosscheck: CrossCheckSuite(options, tree)
                case .mixed: MixedSuite(options, tree)
                case .bystander: BystanderSuite(options, tree)
                case .start: StartSuite(options, tree)
                case .memory: MemorySuite(options, tree)
                case .churn: ChurnSuite(options, tree)
                case .diskBytes: DiskBytesSuite(options, tree)
                case .expiry: ExpirySuite(options, tree)
                case .expiryLag: ExpiryLagSuite(options, tree)
                case .scale: ScaleSuite(options, tree)
                case .embedded: EmbeddedSuite(options, tree)
                case .models: ModelSuite(options, tree)
                case .documents: DocumentsSuite(options, tree)
                case .fetching: FetchingSuite(options, tree)
                case .hits: HitRatioSuite(options, tree)
                case .settings: SettingsSuite(options, tree)
                case .origin: OriginSuite(options, tree)
                }
            return (name, suite)
        }
    }
}
