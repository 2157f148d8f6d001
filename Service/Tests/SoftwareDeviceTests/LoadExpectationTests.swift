import AuthContract
import SoftwareDevice
import Testing

@Suite struct LoadExpectationTests {
    private static func measures(failed: Int = 1) -> LoadMeasures {
        var (status, challenge) = (LatencyHistogram(), LatencyHistogram())
        for milliseconds in 1...100 { status.note(.milliseconds(milliseconds)) }
        challenge.note(.seconds(9))
        return LoadMeasures(
            latencies: ["status": status, "challenge": challenge], operationsOfLoad: ["status", "verify"],
            failed: failed, count: 1000, rate: 250)
    }

    @Test(arguments: [
        ("p50<51ms", true), ("p50<50ms", false), ("p50<=50.05ms", true), ("p99<0.1s", true), ("p99<98000us", false),
        ("p99.9<=100.1ms", true), ("max<=100ms", true), ("max>100ms", false), ("max>=100ms", true),
        ("status.p99 < 100ms", true), ("challenge.max<1s", false), ("challenge.max>8s", true),
        ("errors<=0.1%", true), ("errors<0.1%", false), ("errors<=1", true), ("errors<1", false),
        ("rate>249.5", true), ("rate>=251", false),
        // No measure for `verify` exists.
        ("verify.p99<1s", false), ("verify.p99>0ms", false),
    ]) func `an expectation holds or not`(text: String, holds: Bool) throws {
        #expect(try LoadExpectation(text).holds(in: Self.measures()) == holds)
    }

    @Test(arguments: [
        "", "p99", "p99<", "<50ms", "p99<50", "p99<50m", "p0<1ms", "p101<1ms", "q99<1ms", "p<1ms", "p99=50ms",
        "errors<x", "errors<-1", "errors<1%%", "rate<5ms", "other.p99<1ms", "p99<1e3ms", "p99<<1ms", "p99<.ms",
    ]) func `anything else is refused`(text: String) {
        #expect(throws: ContractError.self) { try LoadExpectation(text) }
    }
}
