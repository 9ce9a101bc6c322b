import LarderPlatform

/// The environment variables that the tests read. docs/Testing.md describes each.
package enum TestSetting: String, CaseIterable, Sendable {
    case seed = "LARDER_SEED"
    case rounds = "LARDER_ROUNDS"
    case killRounds = "LARDER_KILL_ROUNDS"
    case accidents = "LARDER_ACCIDENTS"
    case lockProcesses = "LARDER_LOCK_PROCESSES"
    case damageRounds = "LARDER_DAMAGE_ROUNDS"
    case controlPoints = "LARDER_CONTROL_POINTS"
    case salvagePoints = "LARDER_SALVAGE_POINTS"
    case diskRounds = "LARDER_DISK_ROUNDS"
    case hostile = "LARDER_HOSTILE"
    case memoryBytes = "LARDER_TEST_MEMORY"
    case sanitized = "LARDER_SANITIZED"
    case python = "LARDER_PYTHON"
    case fleetRounds = "LARDER_FLEET_ROUNDS"
    case originServer = "LARDER_ORIGIN_SERVER"
    case makeGolden = "LARDER_MAKE_GOLDEN"
    case updateDocs = "LARDER_UPDATE_DOCS"
    // The following variables are only for the program larderaccidents.
    case point = "LARDER_POINT"
    case pointsPerRun = "LARDER_POINTS_PER_RUN"
    case model = "LARDER_MODEL"
    case durability = "LARDER_DURABILITY"
    case faulty = "LARDER_FAULTY"
    case steadyClock = "LARDER_STEADY_CLOCK"
    case verbose = "LARDER_VERBOSE"

    package var text: String? { getenv(rawValue).map { String(cString: $0) } }

    package var isSet: Bool { text != nil }

    /// Returns a number, decimal or `0x…`; nil if the variable is not set. An invalid number terminates the program,
    /// because a long test run with the wrong seed would be worthless.
    package func number<Number: FixedWidthInteger>(_ type: Number.Type = Int.self) -> Number? {
        guard let text else { return nil }
        let number = text.hasPrefix("0x") ? Number(text.dropFirst(2), radix: 16) : Number(text)
        guard let number else { preconditionFailure("\(rawValue) is no number: \(text)") }
        return number
    }
}
