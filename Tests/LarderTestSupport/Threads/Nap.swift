import LarderPlatform

/// Sleeps for a millisecond between two checks of a state that another thread or process changes, so that it can use
/// the core.
package func nap() { WorkThread.sleep(nanoseconds: 1_000_000) }
