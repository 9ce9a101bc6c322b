import LarderEngine
import LarderTestSupport

/// The plan of one recorded run, by its seed.
struct RunPlan {
    enum Kind: String {
        /// Daemons end by SIGKILL or by a clean shutdown.
        case crash
        /// As `crash`, and system calls fail.
        case faults
    }

    let seed: UInt64
    let kind: Kind
    let durability: Durability
    let policy: UpdatePolicy
    let connections: Int
    /// The number of daemons that run on the larder, one at a time.
    let lives: Int
    /// The number of rounds of commands for each daemon.
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
        // Checkpoints and rewrites are frequent, occasional, or only at the end.
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
