import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderServices

@Suite struct ServiceManagerTests {
    /// A daemon with a stuck event loop sends no watchdog signal. A healthy daemon sends one in each half of the
    /// interval.
    @Test("no watchdog signal is sent while an event loop is stuck") func theWatchdogNeedsAllEventLoops() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let standIn = try ServiceStandIn(in: place)
        let manager = try #require(
            ServiceManager(name: standIn.notifyName, interval: "30000000", process: "\(getpid())"))
        #expect(manager.watchdogMilliseconds == 30_000)
        manager.tick(now: 100_000, isAlive: false)
        manager.tick(now: 100_000, isAlive: true)
        manager.notify("first")
        #expect(try [standIn.notified(), standIn.notified()] == ["WATCHDOG=1", "STATUS=first"])
        manager.tick(now: 114_999, isAlive: true)
        manager.tick(now: 200_000, isAlive: false)
        manager.notify("first")
        manager.notify("second\nWATCHDOG=1")
        #expect(try standIn.notified() == "STATUS=second WATCHDOG=1")
        manager.tick(now: 115_000, isAlive: true)
        #expect(try standIn.notified() == "WATCHDOG=1")
    }

    /// States are sent in order even if the manager's queue was full, and status texts do not overtake them.
    @Test func serviceStatesAreSentInOrderIfTheQueueWasFull() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let standIn = try ServiceStandIn(in: place)
        let manager = try #require(ServiceManager(name: standIn.notifyName, interval: nil, process: nil))
        // One socket can only have as many datagrams pending as its send buffer holds, so several sockets fill the
        // queue.
        var filling: [Int32] = []
        defer { for descriptor in filling { close(descriptor) } }
        var isFull = false
        while !isFull {
            filling.append(UnixSocket.makeDatagram())
            isFull = UnixSocket.sendDatagram(filling[filling.count - 1], [0x78], to: standIn.notifyName) != 0
            while UnixSocket.sendDatagram(filling[filling.count - 1], [0x78], to: standIn.notifyName) == 0 {}
        }
        manager.ready("one")
        manager.stopping("two")
        for index in 0..<100 { manager.notify("dropped \(index)") }
        while try standIn.notified() == "x" {
            manager.tick(now: 0, isAlive: true)
        }
        #expect(try standIn.notified() == "STOPPING=1\nSTATUS=stopping: two")
        manager.notify("three")
        #expect(try standIn.notified() == "STATUS=three")
    }
}
