import SoftwareDevice
import Testing

@Suite struct LatencyHistogramTests {
    private func histogram(_ microseconds: some Sequence<Int64>) -> LatencyHistogram {
        var histogram = LatencyHistogram()
        for value in microseconds { histogram.note(.microseconds(value)) }
        return histogram
    }

    @Test func `nothing noted is zero everywhere`() {
        let empty = LatencyHistogram()
        #expect(empty.count == 0)
        #expect(empty.percentile(0.5) == .zero)
        #expect(empty.maximum == .zero)
    }

    @Test func `below 2048 microseconds it is exact`() {
        let histogram = histogram(1...100)
        #expect(histogram.percentile(0.5) == .microseconds(50))
        #expect(histogram.percentile(0.9) == .microseconds(90))
        #expect(histogram.percentile(0.99) == .microseconds(99))
        #expect(histogram.percentile(1) == .microseconds(100))
        #expect(histogram.percentile(0) == .microseconds(1))
        #expect(self.histogram(1...2047).percentile(0.5) == .microseconds(1024))
    }

    @Test func `above, it is never too little and at most a 1024th too much`() {
        var generator = SystemRandomNumberGenerator()
        // Values of all magnitudes up to an hour.
        let values = (0..<5000).map { _ in
            Int64.random(in: 0...3_600_000_000 >> Int64.random(in: 0...31, using: &generator), using: &generator)
        }
        let sorted = values.sorted()
        let histogram = histogram(values)
        for share in [0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1] {
            let exact = sorted[max(1, Int((Double(sorted.count) * share).rounded(.up))) - 1]
            let found = histogram.percentile(share)
            #expect(found >= .microseconds(exact), "\(share)")
            #expect(found <= .microseconds(exact + exact / 1024 + 1), "\(share)")
        }
        #expect(histogram.maximum == .microseconds(sorted.last ?? 0))
        #expect(histogram.count == 5000)
    }

    @Test func `every boundary of a bucket is counted once`() {
        for power in 0..<32 {
            for offset: Int64 in [-1, 0, 1] {
                let value = max(0, (Int64(1) << Int64(power)) + offset)
                let found = histogram([value]).percentile(0.5)
                #expect(found == .microseconds(min(value, 3_600_000_000)) || value > 3_600_000_000, "\(value)")
            }
        }
    }

    @Test func `negative and endless durations are bounded`() {
        var histogram = LatencyHistogram()
        histogram.note(.seconds(-1))
        histogram.note(.seconds(Int64.max))
        #expect(histogram.count == 2)
        #expect(histogram.percentile(0.5) == .zero)
        #expect(histogram.percentile(1) > .seconds(3600))
    }

    @Test func `two merged histograms equal one histogram of all values`() {
        var first = histogram([1, 200, 30_000])
        first.add(histogram([5, 4_000_000]))
        #expect(first == histogram([1, 5, 200, 30_000, 4_000_000]))
    }
}
