import LarderPlatform

/// Sleeps for a millisecond: between two looks at what another thread or process changes, so that it gets the core.
package func nap() { usleep(1000) }
