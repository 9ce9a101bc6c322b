import LarderPlatform

/// Where fetched values come from, in tests: each call returns its number, waits while the origin is held, and fails when
/// told.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
package final class TestOrigin: @unchecked Sendable {
    package struct Failure: Error, Hashable { package init() {} }

    private let lock = Lock()
    private var state = (calls: 0, cancellations: 0, running: 0, isHeld: false, fails: false)

    package init() {}

    package var calls: Int { lock.withLock { state.calls } }
    /// How many calls ended because their task was cancelled.
    package var cancellations: Int { lock.withLock { state.cancellations } }
    package var running: Int { lock.withLock { state.running } }

    package func hold() { lock.withLock { state.isHeld = true } }
    package func letGo() { lock.withLock { state.isHeld = false } }
    package var fails: Bool {
        get { lock.withLock { state.fails } }
        set { lock.withLock { state.fails = newValue } }
    }

    /// The number of the call, from 1 on.
    package func value() async throws -> Int {
        let number = lock.withLock {
            state.calls += 1
            state.running += 1
            return state.calls
        }
        defer { lock.withLock { state.running -= 1 } }
        while lock.withLock({ state.isHeld }) {
            if Task.isCancelled {
                lock.withLock { state.cancellations += 1 }
                throw CancellationError()
            }
            try? await Task.sleep(for: .milliseconds(1))
        }
        if fails { throw Failure() }
        return number
    }

    /// Waits until there were so many calls.
    package func waitUntil(calls count: Int) async {
        await eventually { self.calls >= count }
    }
}

/// Waits for something that another task does. The test's time limit ends it; where it waits is printed after some time.
package func eventually(
    _ isSo: () async throws -> Bool, fileID: String = #fileID, line: Int = #line
) async rethrows {
    var turns = 0
    while try await !isSo() {
        try? await Task.sleep(for: .milliseconds(1))
        turns += 1
        if turns == 20_000 { print("\(fileID):\(line): still waiting") }
    }
}
