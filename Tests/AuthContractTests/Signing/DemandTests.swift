import AuthContract
import Testing

@Suite("Demands in answers")
struct DemandTests {
    @Test(
        "a demanded assertion names its prefix as a quoted string",
        arguments: [
            ("/v1/pay", #"required; prefix="/v1/pay""#), ("/", #"required; prefix="/""#),
            (#"/a"b\c"#, #"required; prefix="/a\"b\\c""#), (nil, "required"),
        ] as [(String?, String)])
    func assertion(prefix: String?, value: String) {
        #expect(AssertionDemand(prefix: prefix).headerValue == value)
    }

    @Test("a demanded rotation names its deadline and its reason")
    func rotation() {
        let by = UnixTime(1_780_272_000)
        #expect(RotationDemand(by: by, reason: .scheduled).headerValue == "required; by=1780272000; reason=scheduled")
        #expect(RotationDemand(by: by, reason: .compromise).headerValue == "required; by=1780272000; reason=compromise")
    }
}
