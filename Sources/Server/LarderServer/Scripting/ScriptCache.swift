import LarderPlatform
import Synchronization

/// The cache of scripts, and the interpreters that no thread uses at present.
///
/// A script of EVAL stays in the cache while it is among the most recently used scripts. A script of SCRIPT LOAD stays
/// until SCRIPT FLUSH, if the client that has loaded the script may run SCRIPT FLUSH.
///
/// `@unchecked Sendable`: `lock` guards the scripts and interpreters; the rest is atomic or constant.
final class ScriptCache: @unchecked Sendable {
    private static let idleMax = 8

    /// The maximum number of scripts of EVAL in the cache. `bytesMax` is the maximum size of all scripts, in bytes.
    private let evaluatedMax: Int
    private let bytesMax: Int
    /// The maximum amount of memory that one interpreter may use, in bytes.
    private let memoryMax: Int
    private let lock = Lock()
    private var scripts: [ScriptDigest: Script] = [:]
    private var evaluatedCount = 0
    private var byteCount = 0
    private var idle: [Interpreter] = []
    /// The number of SCRIPT FLUSH commands so far. Interpreters from before the last SCRIPT FLUSH are discarded.
    private var generation = 0
    /// The running scripts that hold no locks, and can therefore be killed.
    private var running: [ObjectIdentifier: (ScriptKillSwitch, RunningScript)] = [:]
    private let uses = Atomic<Int>(0)

    let counts = ScriptCounts()

    init(evaluatedMax: Int, bytesMax: Int, memoryMax: Int) {
        (self.evaluatedMax, self.bytesMax, self.memoryMax) = (evaluatedMax, bytesMax, memoryMax)
    }

    // MARK: Scripts

    /// How long a script stays in the cache.
    enum Keeping {
        /// The script stays while it is among the most recently used. If there is no space, the script is not cached.
        case ifThereIsRoom
        /// The script stays while it is among the most recently used scripts. If there is no space, an error is thrown.
        case whileUsed
        case untilFlushed
    }

    func find(_ digest: ScriptDigest) -> Script? {
        guard let script = lock.withLock({ scripts[digest] }) else { return nil }
        script.lastUse.store(uses.wrappingAdd(1, ordering: .relaxed).newValue, ordering: .relaxed)
        return script
    }

    /// Returns the cached script for a source. Compiles a missing script, and adds it to the cache if it has no errors.
    func script(_ text: UnsafeRawBufferPointer, _ keeping: Keeping) throws(CommandError) -> Script {
        let digest = ScriptDigest(of: text)
        if let known = find(digest) {
            if keeping == .untilFlushed { try keep(known, digest) }
            return known
        }
        let script = try Script(digest, text)
        let interpreter = try take()
        do throws(CommandError) {
            _ = try interpreter.compile(script.code)
        } catch {
            give(interpreter)
            throw error
        }
        give(interpreter)
        let kept = insert(script, digest)
        switch keeping {
        case .ifThereIsRoom: break
        case .whileUsed: if find(digest) == nil { throw full }
        case .untilFlushed: try keep(kept, digest)
        }
        return kept
    }

    private func insert(_ script: Script, _ digest: ScriptDigest) -> Script {
        lock.withLock { () -> Script in
            if let known = scripts[digest] { return known }
            while evaluatedCount >= evaluatedMax || evaluatedCount > 0 && script.byteCount > room {
                let oldest = scripts.values.filter { !$0.isLoaded.load(ordering: .relaxed) }
                    .min { $0.lastUse.load(ordering: .relaxed) < $1.lastUse.load(ordering: .relaxed) }
                guard let oldest else { break }
                if let digest = oldest.digest { scripts[digest] = nil }
                evaluatedCount -= 1
                byteCount -= oldest.byteCount
                counts.evicted.wrappingAdd(1, ordering: .relaxed)
            }
            // If there is not enough space, return the script without caching it.
            guard script.byteCount <= room else { return script }
            scripts[digest] = script
            script.lastUse.store(uses.wrappingAdd(1, ordering: .relaxed).newValue, ordering: .relaxed)
            evaluatedCount += 1
            byteCount += script.byteCount
            return script
        }
    }

    /// Keeps a script in the cache until SCRIPT FLUSH.
    private func keep(_ script: Script, _ digest: ScriptDigest) throws(CommandError) {
        try lock.withLock { () throws(CommandError) in
            guard !script.isLoaded.load(ordering: .relaxed) else { return }
            if scripts[digest] == nil {
                guard script.byteCount <= room else { throw full }
                scripts[digest] = script
                byteCount += script.byteCount
            } else {
                evaluatedCount -= 1
            }
            script.isLoaded.store(true, ordering: .relaxed)
        }
    }

    private var room: Int { bytesMax - byteCount }

    private var full: CommandError {
        CommandError(
            "ERR scripts are limited to \(bytesMax) bytes (--max-scripts): use SCRIPT FLUSH")
    }

    /// Removes all scripts from the cache.
    func flush() {
        let previous = lock.withLock {
            generation += 1
            defer {
                scripts = [:]
                evaluatedCount = 0
                byteCount = 0
                idle = []
            }
            return (scripts, idle)
        }
        // Release the scripts and interpreters only after unlocking, because releasing them takes time.
        withExtendedLifetime(previous) {}
    }

    /// The number of cached scripts, and their size in bytes.
    var kept: (count: Int, bytes: Int) { lock.withLock { (scripts.count, byteCount) } }

    // MARK: Interpreters

    /// Returns an interpreter. Only the caller may use it until the caller calls ``give(_:)``.
    func take() throws(CommandError) -> Interpreter {
        let (found, generation) = lock.withLock { (idle.popLast(), self.generation) }
        if let found { return found }
        guard let made = Interpreter(bytesMax: memoryMax, functionsMax: 2 * evaluatedMax, generation: generation) else {
            throw CommandError("ERR not enough memory for an interpreter of up to \(memoryMax) bytes")
        }
        return made
    }

    func give(_ interpreter: Interpreter) {
        guard interpreter.isReusable else { return }
        lock.withLock {
            if interpreter.generation == generation, idle.count < Self.idleMax { idle.append(interpreter) }
        }
    }

    /// The memory of all interpreters that are not in use, in bytes.
    var idleBytes: Int { lock.withLock { idle.reduce(0) { $0 + $1.byteCount } } }

    // MARK: Long-running scripts

    func begin(_ script: ScriptKillSwitch, _ description: RunningScript) {
        lock.withLock { running[ObjectIdentifier(script)] = (script, description) }
    }

    func end(_ script: ScriptKillSwitch) { lock.withLock { running[ObjectIdentifier(script)] = nil } }

    /// Kills the scripts that run for a long time.
    /// - Parameter functions: whether to kill functions, or scripts; nil for both.
    /// - Returns: the number of scripts and functions that were killed.
    func kill(functions: Bool? = nil) -> Int {
        lock.withLock {
            var count = 0
            for (killSwitch, script) in running.values where functions ?? script.isFunction == script.isFunction {
                killSwitch.isKilled.store(true, ordering: .relaxed)
                count += 1
            }
            return count
        }
    }

    /// The function that has been running for the longest time; nil if no function is running for long.
    var runningFunction: RunningScript? {
        lock.withLock { running.values.map(\.1).filter(\.isFunction).min { $0.begin < $1.begin } }
    }

    /// The number of scripts and functions that are running for a long time.
    var runningCount: Int { lock.withLock { running.count } }
}

/// Counts of script runs and of what happened to them.
struct ScriptCounts: ~Copyable {
    let runs = Atomic<Int>(0)
    /// How many times scripts have started again. Reasons are undeclared keys, and entries that other clients changed
    /// after the script had read them.
    let repeats = Atomic<Int>(0)
    /// Scripts that were so slow that they started again without locks.
    let longRuns = Atomic<Int>(0)
    let killed = Atomic<Int>(0)
    let timedOut = Atomic<Int>(0)
    let evicted = Atomic<Int>(0)
}
