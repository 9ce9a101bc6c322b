/// Formats numbers of bytes.
enum ByteText {
    /// Formats a size in a suitable unit: `512 B`, `1.5 KiB`, `64 MiB`.
    static func short(_ bytes: Int) -> String {
        var value = Double(bytes)
        var unit = 0
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
        while value >= 1023.5, unit + 1 < units.count {
            value /= 1024
            unit += 1
        }
        let tenths = (value * 10).rounded()
        if unit == 0 || tenths >= 100 || tenths.truncatingRemainder(dividingBy: 10) == 0 {
            return "\(Int(value.rounded())) \(units[unit])"
        }
        return "\(Int(tenths) / 10).\(Int(tenths) % 10) \(units[unit])"
    }
}
