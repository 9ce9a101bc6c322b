import Platform

/// Runs `body` on `count` threads at once, and waits for all.
package func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let threads = (0..<count).map { index in WorkThread(name: "test-\(index)") { body(index) } }
    for thread in threads { thread.join() }
}
