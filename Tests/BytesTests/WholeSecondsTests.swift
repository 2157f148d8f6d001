import Bytes
import Testing

@Suite struct WholeSecondsTests {
    @Test(arguments: [
        ("0", 0), ("7", 7), ("007", 7), ("86400", 86_400), ("86401", 86_400), ("999999999999999999", 86_400),
    ])
    func `seconds are read up to a day`(text: String, seconds: Int64) {
        #expect(Int64(wholeSeconds: text) == seconds)
    }

    @Test(arguments: [
        "", " 1", "1 ", "+1", "-1", "1.5", "1e3", "0x1", "١", "Wed, 21 Oct 2026 07:28:00 GMT", "1000000000000000000",
    ])
    func `text that is not digits alone is no number of seconds`(text: String) {
        #expect(Int64(wholeSeconds: text) == nil)
    }
}
