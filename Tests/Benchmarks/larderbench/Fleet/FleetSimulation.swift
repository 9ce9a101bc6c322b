import LarderPlatform

/// Simulates every read and every write of every machine of a fleet, to show the accuracy of the model's formulas.
///
/// Messages take no time. Only for small fleets: each machine has an element for every key.
struct FleetSimulation {
    struct Outcome: Equatable {
        var hitRatio = 0.0
        /// The GETs and the invalidations per second.
        var gets = 0.0
        var pushes = 0.0
        /// The average number of pairs of a key and a client in the origin's tracking table.
        var trackedPairs = 0.0
    }

    private let inputs: FleetInputs
    private let mode: FleetMode
    private let machines: Int
    private let rack: Int
    private let capacity: Int
    private let reads: ZipfSampler
    private let writes: ZipfSampler?
    private var random: SplitMix
    private var now = 0.0

    /// The time at which the entry was stored, by machine and key; negative if it is not stored.
    private var stored: [Double]
    private var queues: [KeyQueue]
    /// Whether a client of the origin is notified of the next write, by client and key.
    private var tracked: [Bool]
    /// Whether a relay has the key, by rack and key.
    private var relayed: [Bool]
    /// The stored entries in the order of their times, for lifetimes.
    private var ending: [(place: Int, time: Double)] = []
    private var ended = 0
    private var pairs = 0
    private var writesDue = 0.0
    private var counted = (reads: 0, hits: 0, gets: 0, pushes: 0, pairs: 0.0)

    init(_ inputs: FleetInputs, _ mode: FleetMode, machines: Int, withDisk: Bool, seed: UInt64 = 1) {
        self.inputs = inputs
        self.mode = mode
        self.machines = machines
        rack = mode.hasRelays ? inputs.rack : 1
        capacity = Int(min(withDisk ? inputs.diskEntries : inputs.memoryEntries, Double(inputs.keys)))
        reads = ZipfSampler(count: inputs.keys, exponent: inputs.readExponent)
        writes = inputs.writeExponent > 0 ? ZipfSampler(count: inputs.keys, exponent: inputs.writeExponent) : nil
        random = SplitMix(seed: seed)
        let clients = (machines + rack - 1) / rack
        stored = .init(repeating: -1, count: machines * inputs.keys)
        let needsQueues = capacity < inputs.keys
        queues = .init(repeating: KeyQueue(universe: needsQueues ? inputs.keys : 0), count: machines)
        tracked = .init(repeating: false, count: clients * inputs.keys)
        relayed = .init(repeating: false, count: clients * inputs.keys)
    }

    /// Runs `count` operations of each machine without counting, and then as many with counting.
    mutating func run(operationsPerMachine count: Int) -> Outcome {
        for _ in 0..<(count * machines) { step() }
        counted = (0, 0, 0, 0, 0)
        let start = now
        for _ in 0..<(count * machines) { step() }
        let seconds = now - start
        return Outcome(
            hitRatio: Double(counted.hits) / Double(max(counted.reads, 1)), gets: Double(counted.gets) / seconds,
            pushes: Double(counted.pushes) / seconds, trackedPairs: counted.pairs / seconds)
    }

    private mutating func uniform() -> Double { Double(random.next() >> 11) * 0x1p-53 }

    private mutating func step() {
        let pause = -log(1 - uniform()) / (inputs.rate * Double(machines))
        counted.pairs += Double(pairs) * pause
        now += pause
        endLifetimes()
        let machine = Int(uniform() * Double(machines))
        // Writes are evenly spaced, so that a short run has the same share of them as a long one.
        writesDue += inputs.writeShare
        if writesDue >= 1 {
            writesDue -= 1
            write(writes?.sample(&random) ?? Int(uniform() * Double(inputs.keys)))
        } else {
            read(reads.sample(&random), machine)
        }
    }

    /// Removes expired entries.
    private mutating func endLifetimes() {
        while ended < ending.count, now - ending[ended].time >= inputs.lifetime {
            let (place, time) = ending[ended]
            ended += 1
            if stored[place] == time { remove(place % inputs.keys, place / inputs.keys) }
        }
    }

    private mutating func remove(_ key: Int, _ machine: Int) {
        stored[machine * inputs.keys + key] = -1
        if capacity < inputs.keys { queues[machine].remove(key) }
    }

    private mutating func read(_ key: Int, _ machine: Int) {
        counted.reads += 1
        let place = machine * inputs.keys + key
        if stored[place] >= 0 {
            counted.hits += 1
            use(key, machine)
            return
        }
        let client = machine / rack
        let shared = client * inputs.keys + key
        if !mode.hasRelays || !relayed[shared] {
            counted.gets += 1
            relayed[shared] = true
            if mode.isTracked, !tracked[shared] {
                tracked[shared] = true
                pairs += 1
            }
        }
        guard mode != .none else { return }
        stored[place] = now
        if mode == .lifetimes { ending.append((place, now)) }
        use(key, machine)
    }

    private mutating func use(_ key: Int, _ machine: Int) {
        guard capacity < inputs.keys else { return }
        if queues[machine].contains(key) { queues[machine].remove(key) }
        queues[machine].push(key)
        if queues[machine].count > capacity {
            let oldest = queues[machine].popOldest()
            stored[machine * inputs.keys + oldest] = -1
        }
    }

    private mutating func write(_ key: Int) {
        switch mode {
        case .none, .lifetimes: return
        case .tracking, .broadcast, .relay, .relayByBroadcast:
            for place in stride(from: key, to: tracked.count, by: inputs.keys) {
                if mode.isBroadcast || tracked[place] { counted.pushes += 1 }
                if tracked[place] { pairs -= 1 }
                tracked[place] = false
                relayed[place] = false
            }
        }
        for machine in 0..<machines where stored[machine * inputs.keys + key] >= 0 {
            remove(key, machine)
        }
    }
}
