import Bytes
import Foundation
import Testing

@Suite struct RFC3339Tests {
    @Test(
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("2026-04-21T18:13:12.153Z", 1_776_795_192.153),
            ("2024-02-29T23:59:59.9Z", 1_709_251_199.9),
            ("2024-08-10T15:17:08.99Z", 1_723_303_028.99), ("0000-03-01T00:00:00Z", -62_162_035_200),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] as [(String, Double)])
    func `a time is read, and written to the millisecond`(_ text: String, _ seconds: Double) throws {
        let date = try #require(RFC3339.date(text))
        #expect(abs(date.timeIntervalSince1970 - seconds) < 0.0005)
        let written = try #require(RFC3339.text(date))
        #expect(RFC3339.date(written).map { abs($0.timeIntervalSince(date)) < 0.001 } == true)
        #expect(written.prefix(19) == text.prefix(19))
    }

    @Test(arguments: [
        "", "2026-04-21", "2026-04-21T18:13:12", "2026-04-21T18:13:12.Z", "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-04-31T00:00:00Z", "2026-04-21T24:00:00Z", "2026-04-21T18:60:00Z", "2026-04-21T18:13:60Z",
        "2026-04-21T18:13:12+00:00",
        "2026-04-21 18:13:12Z", "+026-04-21T18:13:12Z", "2026-04-21T18:13:12.1234567890Z", "2026-04-00T00:00:00Z",
        "२०२६-04-21T18:13:12Z",
    ]) func `text of any other form is no time`(_ text: String) { #expect(RFC3339.date(text) == nil) }

    @Test func `milliseconds are rounded, and carry into the second`() {
        #expect(RFC3339.text(Date(timeIntervalSince1970: 0.9996)) == "1970-01-01T00:00:01.000Z")
        #expect(RFC3339.text(Date(timeIntervalSince1970: -0.25)) == "1969-12-31T23:59:59.750Z")
        #expect(RFC3339.text(Date(timeIntervalSince1970: 253_402_300_799.999)) == "9999-12-31T23:59:59.999Z")
    }

    @Test(arguments: [-.infinity, .infinity, .nan, 253_402_300_800, -62_167_219_201, 1e300] as [Double])
    func `a time outside the years 0 to 9999 has no text, and is clamped where it must have one`(seconds: Double) {
        let date = Date(timeIntervalSince1970: seconds)
        #expect(RFC3339.text(date) == nil)
        #expect(CivilTime.fourDigitYears ~= CivilTime(date).year)
    }

    @Test func `a date is in the second that it began in`() {
        #expect(CivilTime(Date(timeIntervalSince1970: 1.999)).secondsSince1970 == 1)
        #expect(CivilTime(Date(timeIntervalSince1970: -0.001)).secondsSince1970 == -1)
    }
}
