import LarderPlatform

/// A cable between this machine and a process in a network namespace of its own, which can be pulled out. It and the namespace
/// are gone when that process is.
///
/// Start the process by ``wrapper``. For Linux, root and `ip` of iproute2.
package final class NetworkLink: Sendable {
    /// A command that starts the rest of its command line in a network namespace of its own.
    package static let wrapper = ["unshare", "--net"]

    /// Whether it can be had here.
    package static let isPossible: Bool = {
        guard geteuid() == 0, let process = try? ChildProcess("unshare", ["--net", "sleep", "60"]) else { return false }
        defer { process.killNow() }
        return (try? NetworkLink(to: process.pid)) != nil
    }()

    /// Where the process finds this machine.
    package let address: String
    private let name: String

    /// - Parameter pid: a process that ``wrapper`` started.
    package init(to pid: pid_t) throws {
        // Of the range for measurements of networks (RFC 2544), which nobody routes: four addresses for each process.
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

    /// Nothing that was sent meanwhile arrives before the protocol repeats it.
    package func set(isUp: Bool) throws { try Self.run("ip", ["link", "set", name, isUp ? "up" : "down"]) }

    /// `unshare` has become the process when it has left our namespace.
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
