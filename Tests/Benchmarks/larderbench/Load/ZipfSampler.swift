import LarderPlatform

/// Draws k from 0..<count with a probability proportional to 1 / (k + 1)^exponent, in constant time and without a
/// table: rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 1996).
struct ZipfSampler {
    private let count: Double
    private let exponent: Double
    /// The integral of the hat function at the left end.
    private let first: Double
    /// The integral of the hat function at the right end.
    private let last: Double
    /// An integer that is at most this much above the drawn point is accepted without computing an integral.
    private let squeeze: Double

    /// - Parameters:
    ///   - count: at least 1.
    ///   - exponent: above 0.
    init(count: Int, exponent: Double) {
        self.count = Double(count)
        self.exponent = exponent
        first = Self.integral(1.5, exponent) - 1
        last = Self.integral(Double(count) + 0.5, exponent)
        squeeze = 2 - Self.inverse(Self.integral(2.5, exponent) - Self.hat(2, exponent), exponent)
    }

    func sample(_ generator: inout SplitMix) -> Int {
        while true {
            let uniform = Double(generator.next() >> 11) * 0x1p-53
            let drawn = last + uniform * (first - last)
            let point = Self.inverse(drawn, exponent)
            let rank = min(max(point.rounded(), 1), count)
            if rank - point <= squeeze || drawn >= Self.integral(rank + 0.5, exponent) - Self.hat(rank, exponent) {
                return Int(rank) - 1
            }
        }
    }

    private static func hat(_ point: Double, _ exponent: Double) -> Double { exp(-exponent * log(point)) }

    /// The integral of x^-exponent, chosen so that it is 0 at 1.
    private static func integral(_ point: Double, _ exponent: Double) -> Double {
        let logarithm = log(point)
        let power = (1 - exponent) * logarithm
        return abs(power) > 1e-8 ? expm1(power) / (1 - exponent) : logarithm * (1 + power / 2)
    }

    private static func inverse(_ value: Double, _ exponent: Double) -> Double {
        let scaled = max(value * (1 - exponent), -1)
        return abs(scaled) > 1e-8 ? exp(log1p(scaled) / (1 - exponent)) : exp(value * (1 - scaled / 2))
    }
}
