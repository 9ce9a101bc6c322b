import LarderPlatform

/// A virtual network cable that can be unplugged. It connects this machine with a process in its own network namespace.
/// The cable and the namespace are removed when the process ends.
///
/// Start the process with ``wrapper``. Requires Linux, root, and `ip` of iproute2.
package final class NetworkLink: Sendable {
    /// The beginning of a command line. It runs the rest of the line in a new network namespace.
    package static let wrapper = ["unshare", "--net"]

    /// Whether this machine can create network links.
    package static let isPossible: Bool = {
        guard geteuid() == 0, let process = try? ChildProcess("unshare", ["--net", "sleep", "60"]) else { return false }
        defer { process.killNow() }
        return (try? NetworkLink(to: process.pid)) != nil
    }()

    /// The address of this machine for the process.
    package let address: String
    private let name: String

    /// - Parameter pid: a process started with ``wrapper``.
    package init(to pid: pid_t) throws {
        // In the unrouted address range for network benchmarks (RFC 2544), with four addresses per process.
        let (high, low) = (Int(pid) / 64 % 256, Int(pid) % 64 * 4)
        name = "larder\(pid)"
        address = "198.18.\(high).\(low + 1)"
        try Self.waitForNamespace(of: pid)
        let inside = ["--target", "\(pid)", "--net", "ip"]
        try Self.run("ip", ["link", "add", name, "type", "veth", "peer", "name", "origin", "netns", "\(pid)"])
        try Self.run("ip", ["address", "add", "\(address)/30", "dev", name])
        try Self.run("nsenter", inside + ["address", "add", "198.18.\(high).\(low + 2)/30", "dev", "origin"])
        try Self.run("nsenter", inside + ["link", "set", "origin", "up"])
        try set(isUp: true)
    }

    /// Plugs the cable in, or unplugs it. Packets sent while the cable is unplugged arrive only if the protocol
    /// retransmits them.
    package func set(isUp: Bool) throws { try Self.run("ip", ["link", "set", name, isUp ? "up" : "down"]) }

    /// Waits until `unshare` has moved the process to the new network namespace.
    private static func waitForNamespace(of pid: pid_t) throws {
        func namespace(_ process: String) -> String? {
            var text = [CChar](repeating: 0, count: 64)
            let count = readlink("/proc/\(process)/ns/net", &text, text.count)
            return count > 0 ? String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
        }
        let end = MonotonicClock.milliseconds() + 10_000
        while let found = namespace("\(pid)"), found == namespace("self") {
            guard MonotonicClock.milliseconds() < end else {
                throw ChildProcess.Failure(description: "process \(pid) stays in our network namespace")
            }
            sched_yield()
        }
    }

    private static func run(_ program: String, _ words: [String]) throws {
        let (end, _, errors) = try ChildProcess.run(program, words)
        guard end == .exited(0) else {
            throw ChildProcess.Failure(description: "\(program) \(words.joined(separator: " ")): \(errors)")
        }
    }
}
