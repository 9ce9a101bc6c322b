import LarderPlatform

/// Sleeps for a millisecond between two checks of a state. Meanwhile, the thread or process that changes the state can
/// use the core.
package func nap() { WorkThread.sleep(nanoseconds: 1_000_000) }
