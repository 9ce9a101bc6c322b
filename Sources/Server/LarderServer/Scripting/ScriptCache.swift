import LarderPlatform
import Synchronization

/// The cached scripts, and idle interpreters.
///
/// Scripts of EVAL are kept while they are among the last ones used. Scripts of SCRIPT LOAD are kept until SCRIPT
/// FLUSH, if the client that loaded them may flush.
///
/// `@unchecked Sendable`: the state is guarded by `lock`.
final class ScriptCache: @unchecked Sendable {
    private static let idleMax = 8

    /// The most scripts of EVAL, and the most bytes of all scripts.
    private let evaluatedMax: Int
    private let bytesMax: Int
    /// The memory limit of an interpreter.
    private let memoryMax: Int
    private let lock = Lock()
    private var scripts: [ScriptDigest: Script] = [:]
    private var evaluatedCount = 0
    private var byteCount = 0
    private var idle: [Interpreter] = []
    /// Incremented by SCRIPT FLUSH: older interpreters are discarded.
    private var generation = 0
    /// Running scripts that can be killed, because they hold no locks.
    private var running: [ObjectIdentifier: (ScriptKillSwitch, RunningScript)] = [:]
    private let uses = Atomic<Int>(0)

    let counts = ScriptCounts()

    init(evaluatedMax: Int, bytesMax: Int, memoryMax: Int) {
        self.evaluatedMax = evaluatedMax
        self.bytesMax = bytesMax
        self.memoryMax = memoryMax
    }

    // MARK: Scripts

    /// How long a script is cached.
    enum Keeping {
        /// Keep the script while it is among the last ones used, if there is space.
        case ifThereIsRoom
        /// Keep the script while it is among the last ones used.
        case whileUsed
        case untilFlushed
    }

    /// Finds a script by its digest; nil if it is unknown.
    func find(_ digest: ScriptDigest) -> Script? {
        guard let script = lock.withLock({ scripts[digest] }) else { return nil }
        script.lastUse.store(uses.wrappingAdd(1, ordering: .relaxed).newValue, ordering: .relaxed)
        return script
    }

    /// Returns the cached script with a source, or adds it. It is compiled first, so that a script with errors is not
    /// cached.
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
            // If there is no space, the script runs but is not cached.
            guard script.byteCount <= room else { return script }
            scripts[digest] = script
            script.lastUse.store(uses.wrappingAdd(1, ordering: .relaxed).newValue, ordering: .relaxed)
            evaluatedCount += 1
            byteCount += script.byteCount
            return script
        }
    }

    /// Keeps a script until SCRIPT FLUSH.
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

    /// Removes all scripts.
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
        // Release them without holding the lock.
        withExtendedLifetime(previous) {}
    }

    /// The number and the size of the cached scripts.
    var kept: (count: Int, bytes: Int) { lock.withLock { (scripts.count, byteCount) } }

    // MARK: Interpreters

    /// Takes an interpreter, which must be returned.
    func take() throws(CommandError) -> Interpreter {
        let (found, generation) = lock.withLock { (idle.popLast(), self.generation) }
        if let found { return found }
        guard let made = Interpreter(bytesMax: memoryMax, functionsMax: 2 * evaluatedMax, generation: generation) else {
            throw CommandError("ERR not enough memory for an interpreter of up to \(memoryMax) bytes")
        }
        return made
    }

    /// Takes an idle interpreter, which the caller must return; nil if there is none.
    func takeIdle() -> Interpreter? { lock.withLock { idle.popLast() } }

    func give(_ interpreter: Interpreter) {
        guard interpreter.isReusable else { return }
        lock.withLock {
            if interpreter.generation == generation, idle.count < Self.idleMax { idle.append(interpreter) }
        }
    }

    /// Memory use of idle interpreters.
    var idleBytes: Int { lock.withLock { idle.reduce(0) { $0 + $1.byteCount } } }

    // MARK: Long-running scripts

    func begin(_ script: ScriptKillSwitch, _ description: RunningScript) {
        lock.withLock { running[ObjectIdentifier(script)] = (script, description) }
    }

    func end(_ script: ScriptKillSwitch) { lock.withLock { running[ObjectIdentifier(script)] = nil } }

    enum Kind {
        case scripts, functions
    }

    /// Kills long-running scripts.
    /// - Parameter kind: only scripts, or only functions; nil for both.
    /// - Returns: the number of killed scripts.
    func kill(_ kind: Kind? = nil) -> Int {
        lock.withLock {
            var count = 0
            for (killSwitch, script) in running.values where kind == nil || (kind == .functions) == script.isFunction {
                killSwitch.isKilled.store(true, ordering: .relaxed)
                count += 1
            }
            return count
        }
    }

    /// The longest-running function; nil if there is no long-running one.
    var runningFunction: RunningScript? {
        lock.withLock { running.values.map(\.1).filter(\.isFunction).min { $0.begin < $1.begin } }
    }

    /// The number of long-running scripts.
    var runningCount: Int { lock.withLock { running.count } }
}

/// Counts of scripts by result.
struct ScriptCounts: ~Copyable {
    let runs = Atomic<Int>(0)
    /// Restarts of scripts, because of undeclared keys, or because other clients changed the entries that were read.
    let repeats = Atomic<Int>(0)
    /// Scripts that continued without locks because they were slow.
    let longRuns = Atomic<Int>(0)
    let killed = Atomic<Int>(0)
    let timedOut = Atomic<Int>(0)
    let evicted = Atomic<Int>(0)
}
