import LarderPlatform

/// diskcache, a cache for Python that uses SQLite, in a separate Python process.
enum Diskcache {
    static let name = "diskcache (Python)"

    /// Prints one line per operation: its name, then the elapsed time and the CPU time per entry, in microseconds.
    private static let script = """
        import os, random, sys, time
        import diskcache
        directory, count, value_bytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
        keys = ["key:%012d" % index for index in range(count)]
        random.Random(7).shuffle(keys)
        values = [(lambda half: half + half)(os.urandom((value_bytes + 1) // 2))[:value_bytes] for _ in range(512)]
        cache = diskcache.Cache(directory)
        def measure(name, body):
            wall, processor = time.perf_counter(), time.process_time()
            body()
            print(name, (time.perf_counter() - wall) * 1e6 / count, (time.process_time() - processor) * 1e6 / count)
        def put():
            for index, key in enumerate(keys): cache.set(key, values[index & 511])
        def batches(size):
            for start in range(0, count, size):
                with cache.transact():
                    for index in range(start, min(start + size, count)): cache.set(keys[index], values[index & 511])
        def get():
            for key in keys:
                if cache.get(key) is None: sys.exit("an entry is not there")
        def absent():
            for key in keys:
                if cache.get(key + "-") is not None: sys.exit("a key that was never stored is there")
        measure("put", put)
        measure("batch100", lambda: batches(100))
        measure("batch1000", lambda: batches(1000))
        cache.close()
        cache = diskcache.Cache(directory)
        measure("firstGet", get)
        measure("get", get)
        measure("getAbsent", absent)
        """

    static func version(_ options: BenchOptions, _ tree: TemporaryTree) -> String {
        let words = [
            options.python, "-c",
            "import diskcache, platform; print(diskcache.__version__, 'on Python', platform.python_version())",
        ]
        guard let process = try? ChildProcess(words, outputPath: tree.path + "/version"), process.wait() == .exited(0)
        else {
            return "not found (\(options.python) has none; make installs it)"
        }
        return process.output.split(separator: "\n").first.map(String.init) ?? "unknown"
    }

    /// Measures every operation once, on fewer entries than the other stores, because it is slow.
    static func measure(
        _ options: BenchOptions, directory: String, valueBytes: Int
    ) throws(BenchError) -> [(EmbeddedSuite.Operation, [Metric: Double])] {
        let count = options.isQuick ? 2000 : 20_000
        let process = try ChildProcess(
            [options.python, "-c", script, directory + "/cache", "\(count)", "\(valueBytes)"],
            outputPath: directory + ".out")
        while !process.hasEnded {
            try Interruption.check()
            Clocks.sleep(0.01)
        }
        let end = process.wait()
        let output = process.output
        unlink(process.outputPath)
        guard end == .exited(0) else { throw BenchError("Python failed: \(process.lastLines(output))") }
        return parse(output)
    }

    static func parse(_ output: String) -> [(EmbeddedSuite.Operation, [Metric: Double])] {
        output.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count == 3, let wall = Double(words[1]), let processor = Double(words[2]),
                let operation = EmbeddedSuite.Operation.allCases.first(where: { "\($0)" == words[0] })
            else { return nil }
            return (operation, [.wall: wall, .processor: processor])
        }
    }
}
