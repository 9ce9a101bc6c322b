import LarderPlatform

/// Computes the hit ratios and the load of larders in front of an origin: the tables of docs/Origins.md.
///
/// Reads and writes of each key are independent Poisson processes: a machine reads the key with the rate λ, the fleet
/// writes the key with the rate μ. There are N machines. The key of rank k has the share k^−α / Σ j^−α of all
/// operations. A tier evicts the entry that was not read for the longest time.
///
/// - Hit ratio with invalidation by writes: λ / (λ + μ).
/// - Hit ratio with the lifetime T: λL / (1 + λL), where L = (1 − e^−μT) / μ (Jung, Berger, Balakrishnan, INFOCOM
///   2003).
/// - Eviction: an entry is evicted after the time t without a read. t is the same for all keys, and follows from Σ hits
///   = number of entries that fit (Che, Tung, Wang, JSAC 2002; Fricker, Robert, Roberts, ITC 2012).
/// - Hit ratio with writes and evictions: λ / (λ + μ) · (1 − e^−(λ + μ)t). With evictions before the lifetime T ends:
///   the formula for T with μ + ε instead of μ, where ε makes both formulas agree for T = ∞. This is an approximation,
///   with errors of up to 1.5 percentage points if t ≈ T.
/// - Pairs in the tracking table: N Σ λ / (λ + μ). Invalidations: N Σ μλ / (λ + μ) by tracking, N Σ μ by broadcast.
/// - A full tracking table drops every key with the same rate ν, from Σ Nλ / (Nλ + μ + ν) = capacity (Gelenbe, 1973).
/// - GETs of a relay for R machines: Σ μRλ / (Rλ + μ).
/// - A node's CPU time: (GETs · (9 + 1.4) + writes · 9 + invalidations · 4) / nodes + 4 PINGs per second · connections
///   · 9, in µs.
///
/// The first ranks are summed one by one. Later ranks are in groups whose members differ by less than one percent.
struct FleetModel {
    let inputs: FleetInputs
    private let popularity: Popularity

    init(_ inputs: FleetInputs, isExact: Bool = false) {
        self.inputs = inputs
        popularity = Popularity(
            keys: inputs.keys, readExponent: inputs.readExponent, writeExponent: inputs.writeExponent, isExact: isExact)
    }

    // MARK: One entry

    /// The share of reads that find a key.
    /// - Parameters:
    ///   - reads: reads per second.
    ///   - ends: invalidations per second of an entry that is stored.
    ///   - lifetime: in seconds, starting when the entry is stored.
    ///   - idle: the seconds without a read after which the entry is evicted.
    static func hitRatio(reads: Double, ends: Double, lifetime: Double = .infinity, idle: Double = .infinity) -> Double
    {
        guard reads > 0, idle > 0, lifetime > 0 else { return 0 }
        // If entries are evicted before their lifetime ends, treat evictions as invalidations, at a rate that gives the
        // same hit ratio.
        var ends = ends
        if idle < lifetime {
            let next = reads / (reads + ends) * -expm1(-(reads + ends) * idle)
            guard next > 0 else { return 0 }
            ends = reads * (1 - next) / next
        }
        let life = ends * lifetime > 1e-9 ? -expm1(-ends * lifetime) / ends : lifetime
        return life.isInfinite ? 1 : reads * life / (1 + reads * life)
    }

    /// The time without a read after which a tier of `capacity` entries evicts an entry (Che's approximation). It is
    /// the time for which the average number of stored entries is the capacity; infinite if all entries fit.
    func idleTime(capacity: Double, _ hitRatio: (Popularity.Group, _ idle: Double) -> Double) -> Double {
        guard popularity.sum({ hitRatio($0, .infinity) }) > capacity else { return .infinity }
        return Self.root(above: 1e-9) { idle in popularity.sum { hitRatio($0, idle) } < capacity }
    }

    /// Finds, to ten digits, the number up to which a condition is true.
    private static func root(above start: Double, _ isBelow: (Double) -> Bool) -> Double {
        var (low, high) = (start, start * 2)
        while isBelow(high), high < 1e300 { (low, high) = (high, high * 2) }
        while high / low > 1 + 1e-10 {
            let middle = (low * high).squareRoot()
            if isBelow(middle) { low = middle } else { high = middle }
        }
        return high
    }

    // MARK: A fleet

    func figures(_ mode: FleetMode, machines: Int, withDisk: Bool) -> FleetFigures {
        let count = Double(machines)
        let writes = count * inputs.rate * inputs.writeShare
        let clients = mode.hasRelays ? (count / Double(inputs.rack)).rounded(.up) : count
        var figures = FleetFigures()
        figures.connections = clients
        let reads = { (key: Popularity.Group) in inputs.rate * (1 - inputs.writeShare) * key.read }
        let spurious = mode.isTracked ? spuriousRate(count, writes) : 0
        let ends = { (key: Popularity.Group) in mode.hasHeartbeat ? writes * key.write + spurious : 0 }
        let capacity = withDisk ? max(inputs.diskEntries, inputs.memoryEntries) : inputs.memoryEntries
        let lifetime = mode == .lifetimes ? inputs.lifetime : .infinity
        let ratio = { (key: Popularity.Group, idle: Double) in
            mode == .none ? 0 : Self.hitRatio(reads: reads(key), ends: ends(key), lifetime: lifetime, idle: idle)
        }
        let idle = mode == .none ? 0 : idleTime(capacity: capacity, ratio)
        figures.hitRatio = popularity.sum { $0.read * ratio($0, idle) }
        switch mode {
        case .none, .lifetimes:
            figures.gets = count * popularity.sum { reads($0) * (1 - ratio($0, idle)) }
        case .broadcast:
            figures.gets = count * popularity.sum { reads($0) * (1 - ratio($0, idle)) }
            figures.pushesPerMachine = writes
        case .tracking:
            figures.gets = count * popularity.sum { reads($0) * (1 - ratio($0, idle)) }
            track(&figures, clients: count, reads: reads, ends: ends, fleetReads: { count * reads($0) })
            figures.pushesPerMachine = figures.pushes / count
        case .relay, .relayByBroadcast:
            let rack = Double(min(machines, inputs.rack))
            figures.gets = clients * relayGets(rack, reads, ends) { ratio($0, idle) }
            if mode == .relay {
                track(
                    &figures, clients: clients, reads: { rack * reads($0) }, ends: ends,
                    fleetReads: { count * reads($0) })
            }
            // A relay notifies a machine of a key's change only if the machine has read the key since its previous
            // change.
            figures.pushesPerMachine = popularity.sum { ends($0) * Self.share(reads($0), ends($0)) }
        }
        if mode.isBroadcast { figures.pushes = clients * writes }
        complete(&figures, mode, clients: clients, writes: writes)
        return figures
    }

    /// The share of time in which a state holds. While the state does not hold, it begins at the rate `begins`. While
    /// the state holds, it ends at the rate `ends`.
    private static func share(_ begins: Double, _ ends: Double) -> Double {
        begins > 0 ? begins / (begins + ends) : 0
    }

    /// The origin's tracked keys and invalidations. A client that has read a key is notified of the key's next write or
    /// removal, even if the client has evicted the entry in the meantime.
    private func track(
        _ figures: inout FleetFigures, clients: Double, reads: (Popularity.Group) -> Double,
        ends: (Popularity.Group) -> Double, fleetReads: (Popularity.Group) -> Double
    ) {
        figures.pushes = clients * popularity.sum { ends($0) * Self.share(reads($0), ends($0)) }
        figures.trackedPairs = clients * popularity.sum { Self.share(reads($0), ends($0)) }
        figures.trackedKeys = popularity.sum { Self.share(fleetReads($0), ends($0)) }
    }

    /// The requests of one relay to the origin per second. A relay stores as many entries as fit on its disk.
    private func relayGets(
        _ rack: Double, _ reads: @escaping (Popularity.Group) -> Double,
        _ ends: @escaping (Popularity.Group) -> Double, _ ratio: @escaping (Popularity.Group) -> Double
    ) -> Double {
        let isWhole =
            popularity.sum { Self.share(rack * reads($0), ends($0)) } <= max(inputs.diskEntries, inputs.memoryEntries)
        guard !isWhole else { return popularity.sum { ends($0) * Self.share(rack * reads($0), ends($0)) } }
        let missed = { (key: Popularity.Group) in rack * reads(key) * (1 - ratio(key)) }
        let relayed = { (key: Popularity.Group, idle: Double) in
            Self.hitRatio(reads: missed(key), ends: ends(key), idle: idle)
        }
        let idle = idleTime(capacity: max(inputs.diskEntries, inputs.memoryEntries), relayed)
        return popularity.sum { missed($0) * (1 - relayed($0, idle)) }
    }

    /// The number of times per second that a full tracking table drops any one key, and notifies all clients that have
    /// it.
    private func spuriousRate(_ machines: Double, _ writes: Double) -> Double {
        let room = Double(inputs.tableMax) * Double(inputs.nodes)
        let fleet = { (key: Popularity.Group) in machines * inputs.rate * (1 - inputs.writeShare) * key.read }
        let held = { (rate: Double) in
            popularity.sum { Self.share(fleet($0), writes * $0.write + rate) }
        }
        guard inputs.tableMax > 0, held(0) > room else { return 0 }
        return Self.root(above: 1e-12) { held($0) > room }
    }

    private func complete(_ figures: inout FleetFigures, _ mode: FleetMode, clients: Double, writes: Double) {
        let nodes = Double(inputs.nodes)
        let pings = mode.hasHeartbeat ? clients * 1000 / inputs.heartbeat : 0
        let getCost = inputs.getCost + (mode.isTracked ? inputs.trackCost : 0)
        let work = figures.gets * getCost + writes * inputs.getCost + figures.pushes * inputs.pushCost
        figures.cores = (work / nodes + pings * inputs.pingCost) / 1e6
        figures.trackingMiB =
            (figures.trackedKeys * inputs.trackedKeyBytes + figures.trackedPairs * inputs.trackedPairBytes) / nodes
            / Double(1 << 20)
        figures.bound =
            switch mode {
            case .none: 0
            case .tracking, .broadcast: inputs.bound
            case .lifetimes: inputs.lifetime * 1000
            case .relay, .relayByBroadcast: 2 * inputs.bound
            }
    }

    // MARK: How far a mode goes

    /// Returns the largest fleet that the origin can serve, up to a hundred million machines, and the limit that a
    /// larger fleet would exceed.
    func reach(_ mode: FleetMode, withDisk: Bool) -> (machines: Int, broken: String?) {
        let broken = { figures(mode, machines: $0, withDisk: withDisk).broken(inputs) }
        var (low, high) = (0, 1)
        while high < 100_000_000, broken(high) == nil { (low, high) = (high, high * 2) }
        guard let reason = broken(high) else { return (high, nil) }
        while high - low > max(1, low / 1000) {
            let middle = (low + high) / 2
            if broken(middle) == nil { low = middle } else { high = middle }
        }
        return (low, broken(high) ?? reason)
    }
}
