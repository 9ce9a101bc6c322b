import LarderPlatform
import Testing

/// Tests that the limits of control groups are found: those of containers and services.
@Suite struct MachineMemoryTests {
    private static func limits(_ files: [String: String]) -> [Int] { MachineMemory.groupLimits { files[$0] } }

    @Test func limitsOfAllGroupsAboveAreFound() {
        let files = [
            "/proc/self/cgroup": "0::/system.slice/larderd.service\n", "/sys/fs/cgroup/memory.max": "max\n",
            "/sys/fs/cgroup/system.slice/memory.max": "2147483648\n",
            "/sys/fs/cgroup/system.slice/larderd.service/memory.max": "268435456\n",
        ]
        #expect(Self.limits(files) == [2 << 30, 256 << 20])
    }

    /// A container sees its own group as the root, but may have the path of the host.
    @Test func theLimitOfAContainerIsFound() {
        #expect(
            Self.limits(["/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "268435456\n"]) == [256 << 20])
        #expect(
            Self.limits([
                "/proc/self/cgroup": "0::/../docker/1f3c\n", "/sys/fs/cgroup/memory.max": "268435456\n",
            ]) == [256 << 20])
    }

    @Test func limitsOfTheFirstVersionAreFound() {
        let files = [
            "/proc/self/cgroup": "5:cpu,cpuacct:/a\n4:memory:/docker/1f3c\n0::/other\n",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "/sys/fs/cgroup/memory/docker/1f3c/memory.limit_in_bytes": "268435456\n",
        ]
        #expect(Self.limits(files) == [9_223_372_036_854_771_712, 256 << 20])
    }

    @Test func unreadableLimitsAreNone() {
        #expect(Self.limits([:]) == [])
        #expect(Self.limits(["/proc/self/cgroup": "0::/\nx\n::\n", "/sys/fs/cgroup/memory.max": "much"]) == [])
    }
}
