import LarderPlatform
import Synchronization

/// The scripts that the server knows, and idle interpreters.
///
/// Scripts that EVAL brought are kept as long as they are among the last ones used; scripts that SCRIPT LOAD brought
/// until SCRIPT FLUSH, if whoever loaded them may flush.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the state is read and written with the lock held.
final class ScriptCache: @unchecked Sendable {
    private static let idleMax = 8

    /// How many scripts of EVAL are kept, and the bytes of all.
    private let evaluatedMax: Int
    private let bytesMax: Int
    /// The bytes of an interpreter.
    private let memoryMax: Int
    private let lock = Lock()
    private var scripts: [ScriptDigest: Script] = [:]
    private var evaluatedCount = 0
    private var byteCount = 0
    private var idle: [Interpreter] = []
    /// Raised by SCRIPT FLUSH: older interpreters are given up.
    private var generation = 0
    /// Scripts that run without locks, and can be ended.
    private var running: [ObjectIdentifier: (ScriptKillSwitch, RunningScript)] = [:]
    private let uses = Atomic<Int>(0)

    let counts = ScriptCounts()

    init(evaluatedMax: Int, bytesMax: Int, memoryMax: Int) {
        self.evaluatedMax = evaluatedMax
        self.bytesMax = bytesMax
        self.memoryMax = memoryMax
    }

    // MARK: Scripts

    /// How long a script is kept.
    enum Keeping {
        /// Not at all, or as long as it is among the last ones used.
        case ifThereIsRoom
        /// As long as it is among the last ones used.
        case whileUsed
        case untilFlushed
    }

    /// The script with a digest; nil if the server does not know it.
    func find(_ digest: ScriptDigest) -> Script? {
        guard let script = lock.withLock({ scripts[digest] }) else { return nil }
        script.lastUse.store(uses.wrappingAdd(1, ordering: .relaxed).newValue, ordering: .relaxed)
        return script
    }

    /// The script with a text, new if necessary. It is compiled, so that a faulty one is not kept.
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
            // Without room it runs all the same, and is not kept.
            guard script.byteCount <= room else { return script }
            scripts[digest] = script
            script.lastUse.store(uses.wrappingAdd(1, ordering: .relaxed).newValue, ordering: .relaxed)
            evaluatedCount += 1
            byteCount += script.byteCount
            return script
        }
    }

    /// Has a script stay until SCRIPT FLUSH.
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
            "ERR scripts take \(bytesMax) bytes at most (--max-scripts): SCRIPT FLUSH makes room")
    }

    /// Forgets all scripts.
    func flush() {
        let former = lock.withLock {
            generation += 1
            defer {
                scripts = [:]
                evaluatedCount = 0
                byteCount = 0
                idle = []
            }
            return (scripts, idle)
        }
        // Released without the lock.
        withExtendedLifetime(former) {}
    }

    /// How many scripts are kept, and their bytes.
    var kept: (count: Int, bytes: Int) { lock.withLock { (scripts.count, byteCount) } }

    // MARK: Interpreters

    /// An interpreter, to be given back.
    func take() throws(CommandError) -> Interpreter {
        let (found, generation) = lock.withLock { (idle.popLast(), self.generation) }
        if let found { return found }
        guard let made = Interpreter(bytesMax: memoryMax, functionsMax: 2 * evaluatedMax, generation: generation) else {
            throw CommandError("ERR there is no memory for an interpreter of \(memoryMax) bytes at most")
        }
        return made
    }

    /// An idle interpreter, to be given back; nil if there is none.
    func takeIdle() -> Interpreter? { lock.withLock { idle.popLast() } }

    func give(_ interpreter: Interpreter) {
        guard interpreter.isReusable else { return }
        lock.withLock {
            if interpreter.generation == generation, idle.count < Self.idleMax { idle.append(interpreter) }
        }
    }

    /// The memory of idle interpreters.
    var idleBytes: Int { lock.withLock { idle.reduce(0) { $0 + $1.byteCount } } }

    // MARK: Scripts that take long

    func begin(_ script: ScriptKillSwitch, _ description: RunningScript) {
        lock.withLock { running[ObjectIdentifier(script)] = (script, description) }
    }

    func end(_ script: ScriptKillSwitch) { lock.withLock { running[ObjectIdentifier(script)] = nil } }

    enum Kind {
        case scripts, functions
    }

    /// Ends what takes long.
    /// - Parameter kind: only scripts, or only functions; nil for both.
    /// - Returns: how many there were.
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

    /// The function that has been running for the longest time; nil if none takes long.
    var runningFunction: RunningScript? {
        lock.withLock { running.values.map(\.1).filter(\.isFunction).min { $0.begin < $1.begin } }
    }

    /// How many scripts run that take long.
    var runningCount: Int { lock.withLock { running.count } }
}

/// How scripts ended.
struct ScriptCounts: ~Copyable {
    let runs = Atomic<Int>(0)
    /// Attempts that began anew: with keys that were not declared, or because others changed what was read.
    let repeats = Atomic<Int>(0)
    /// Scripts that went on without locks, because they took long.
    let longRuns = Atomic<Int>(0)
    let killed = Atomic<Int>(0)
    let timedOut = Atomic<Int>(0)
    let evicted = Atomic<Int>(0)
}
