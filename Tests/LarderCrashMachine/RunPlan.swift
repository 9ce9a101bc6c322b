import LarderEngine
import LarderTestSupport

/// How one recorded run goes, by its seed.
struct RunPlan {
    enum Kind: String {
        /// Ends by SIGKILL, and clean ones.
        case crash
        /// The same, and calls to the system fail.
        case faults
    }

    let seed: UInt64
    let kind: Kind
    let durability: Durability
    let policy: UpdatePolicy
    let connections: Int
    /// How many daemons, one after the other, on the same larder.
    let lives: Int
    /// How many rounds of commands each sees.
    let rounds: Int
    /// Whether there are values of several MiB.
    let hasLongValues: Bool
    let movesClock: Bool

    init(seed: UInt64, kind: Kind, rounds: Int, steady: Bool, durability only: Durability? = nil) {
        var random = SeededGenerator(seed: seed)
        self.seed = seed
        self.kind = kind
        let any = Durability.allCases.randomElement(using: &random) ?? .os
        durability = only ?? any
        policy = [.lowest, .never, .low].randomElement(using: &random) ?? .never
        connections = Int.random(in: 1...4, using: &random)
        lives = Int.random(in: 1...4, using: &random)
        self.rounds = rounds
        hasLongValues = random.oneIn(6)
        movesClock = random.oneIn(2) && !steady
    }

    /// The options of one daemon.
    func options(_ random: inout SeededGenerator) -> [String] {
        // Checkpoints and rewrites all the time, now and then, or only at the end.
        let checkpoint = ["2K", "16K", "100K", "64M"].randomElement(using: &random) ?? "64M"
        let memory = ["0", "100K", "16M"].randomElement(using: &random) ?? "16M"
        return [
            "--durability", durability.rawValue, "--policy", policy.description, "--checkpoint", checkpoint,
            "--memory", memory, "--threads", random.oneIn(3) ? "2" : "1",
        ]
    }

    var text: String {
        "seed \(seed), \(kind.rawValue), \(durability.rawValue), policy \(policy), \(connections) connections"
    }
}
