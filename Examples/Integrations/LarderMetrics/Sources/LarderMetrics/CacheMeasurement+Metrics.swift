import LarderClient
import Metrics

extension CacheMeasurement {
    /// Passes the measurement to the program's metrics system: `options.onMeasurement = { $0.record() }`.
    public func record() {
        let dimensions = dimensions.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        switch kind {
        case .gauge: Gauge(label: name, dimensions: dimensions).record(value)
        case .duration: Timer(label: name, dimensions: dimensions).recordSeconds(value)
        }
    }
}
