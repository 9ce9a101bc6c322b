/// The speed at which writers may continue while a checkpoint is running.
///
/// LevelDB takes entries at an uneven speed, because it sometimes merges tables for a second. If writers used up all room
/// at full speed, all of them would then wait that long. So writers are slowed down when little room is left: to the
/// average speed of LevelDB when half of that room is used. LevelDB slows down its own writers for the same reason.
struct WritePace {
    /// Whether a checkpoint is running.
    var isOn = false
    /// The number of bytes that LevelDB has taken per second, on average over the last seconds.
    private var bytesPerSecond = Double(8 << 20)
    private var passed = 0

    /// The time over which the speed is averaged, in seconds.
    private static let averagedSeconds = 4.0
    /// The minimum speed, in bytes per second.
    private static let least = Double(1 << 20)

    /// Measures LevelDB's speed.
    /// - Parameters:
    ///   - total: the number of bytes that were ever passed to LevelDB.
    ///   - seconds: the time since the previous call, without the time in which no checkpoint was running.
    mutating func note(passed total: Int, seconds: Double) {
        bytesPerSecond += (Double(total - passed) - bytesPerSecond * seconds) / Self.averagedSeconds
        bytesPerSecond = max(bytesPerSecond, Self.least)
        passed = total
    }

    /// Returns the number of bytes above which writers wait for the next call.
    /// - Parameters:
    ///   - used: the present number of bytes.
    ///   - most: the number at which writers stop. They are slowed down from half of it.
    ///   - seconds: the time until the next call.
    func limit(used: Int, most: Int, seconds: Double) -> Int {
        let slow = most / 2
        guard used > slow else { return .max }
        let room = max(0, Double(most - used) / Double(most - slow))
        // The square: the less room is left, the more of it lasts through a long merge, during which writers only crawl.
        return used + Int(4 * room * room * bytesPerSecond * seconds)
    }
}
