import AuthContract
import Foundation
import Testing

@testable import SynheartAuth

/// The arithmetic of clocks: exact bounds, rounding, and values at which it could overflow.
@Suite struct ClockArithmeticTests {
    @Test func `an offset has 24 hours at most`() {
        for bound in [Int64(86_400_000), -86_400_000] {
            #expect(ClockOffset(milliseconds: bound)?.milliseconds == bound)
            #expect(ClockOffset(milliseconds: bound + bound.signum()) == nil)
        }
        #expect(ClockOffset.none.milliseconds == 0)
    }

    @Test func `an offset is the server time plus half a round trip, minus the local time`() {
        let offset = ClockOffset(serverTime: UnixTime(1001), receivedAt: 998_000, roundTrip: .milliseconds(601))
        #expect(offset?.milliseconds == 3300)
    }

    @Test func `no offset comes from times at which the arithmetic overflows`() {
        // Without the overflow check, the first three would wrap around to offsets below two seconds. The last does not overflow.
        let last = UnixTime(.max / 1000)
        #expect(ClockOffset(serverTime: UnixTime(.max), receivedAt: -1000, roundTrip: .zero) == nil)
        #expect(ClockOffset(serverTime: last, receivedAt: .min, roundTrip: .seconds(4)) == nil)
        #expect(ClockOffset(serverTime: last, receivedAt: .min, roundTrip: .zero) == nil)
        #expect(ClockOffset(serverTime: last, receivedAt: .max, roundTrip: .zero)?.milliseconds == -807)
    }

    @Test(
        arguments: [
            (0, 0), (999, 0), (1000, 1), (1999, 1), (-1, -1), (-999, -1), (-1000, -1), (-1001, -2), (-2000, -2),
        ] as [(Int64, Int64)])
    func `a server time is rounded down to whole seconds`(milliseconds: Int64, seconds: Int64) throws {
        #expect(ClockOffset.none.serverTime(atLocal: milliseconds) == UnixTime(seconds))
        let offset = try #require(ClockOffset(milliseconds: 5000))
        #expect(offset.serverTime(atLocal: milliseconds - 5000) == UnixTime(seconds))
    }

    @Test func `an offset that would overflow is not applied`() throws {
        for (offset, local) in [(Int64(1), Int64.max), (-1, .min)] {
            let time = try #require(ClockOffset(milliseconds: offset)).serverTime(atLocal: local)
            #expect(time == ClockOffset.none.serverTime(atLocal: local))
        }
    }

    @Test(arguments: [(1999, false), (2000, true), (-1999, false), (-2000, true), (0, false)] as [(Int64, Bool)])
    func `a difference of two seconds is news`(difference: Int64, isNews: Bool) throws {
        let other = try #require(ClockOffset(milliseconds: 50_000))
        let offset = try #require(ClockOffset(milliseconds: 50_000 + difference))
        #expect(offset.isNews(comparedTo: other) == isNews)
    }

    @Test(
        arguments: [
            (.zero, 0), (.milliseconds(1500), 1500), (.milliseconds(-1500), -1500), (.nanoseconds(999_999), 0),
            (.nanoseconds(1_000_000), 1), (.seconds(4_000_000_000_000), 4_000_000_000_000_000),
            (.seconds(4_000_000_000_001), 4_000_000_000_000_000), (.seconds(Int64.max), 4_000_000_000_000_000),
            (.seconds(-4_000_000_000_001), -4_000_000_000_000_000), (.seconds(Int64.min), -4_000_000_000_000_000),
        ] as [(Duration, Int64)])
    func `a duration has whole milliseconds, and bounds`(duration: Duration, milliseconds: Int64) {
        #expect(duration.wholeMilliseconds == milliseconds)
    }

    @Test func `the system's clocks show now, and go on`() {
        let clock = SystemClock()
        let (before, wall) = (clock.continuous, clock.wallMilliseconds)
        #expect(abs(Double(wall) / 1000 - Date().timeIntervalSince1970) < 60)
        #expect(before >= .zero && clock.continuous >= before && before < .seconds(86_400))
    }

    @Test(arguments: [86_400_000, -86_400_000])
    func `correctClockSkew learns 24 hours, and not a millisecond more`(bound: Int64) async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let local = phone.clock.wallMilliseconds
        let beyond = Double(local + bound + bound.signum()) / 1000
        let error = await expectError(.clockSkew) { try await sdk.correctClockSkew(serverTimestamp: beyond) }
        #expect(try error?.recovery == .correctClock && phone.record().clockOffset == .none)
        try await sdk.correctClockSkew(serverTimestamp: Double(local + bound) / 1000)
        #expect(try phone.record().clockOffset.milliseconds == bound)
    }

    @Test func `correctClockSkew corrects every app used so far, or the named one`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let other = "com.example.other"
        func offsets() async throws -> [Int64] {
            var offsets: [Int64] = []
            for app in [Phone.app, other] {
                offsets.append(try await sdk.identity(app).context.ledger.load().clockOffset.milliseconds)
            }
            return offsets
        }
        #expect(try await offsets() == [0, 0])
        let local = Double(phone.clock.wallMilliseconds) / 1000
        try await sdk.correctClockSkew(serverTimestamp: local + 5)
        #expect(try await offsets() == [5000, 5000])
        try await sdk.correctClockSkew(serverTimestamp: local + 9, appID: other)
        #expect(try await offsets() == [5000, 9000])
    }

    @Test(
        arguments: [
            (999_999_999, false), (1_000_000_000, true), (9_999_999_999, true), (10_000_000_000, false),
        ] as [(Int64, Bool)])
    func `a signature has a timestamp of ten digits, or is CLOCK_SKEW`(seconds: Int64, isSigned: Bool) async throws {
        let (phone, sdk, _) = try await Phone.registered()
        phone.clock.setError(.seconds(seconds) - .milliseconds(phone.clock.trueMilliseconds))
        func sign() async throws -> String? {
            try await sdk.signRequest(appID: Phone.app, method: "GET", path: "/").dictionary["X-Synheart-Timestamp"]
        }
        if isSigned {
            #expect(try await sign() == "\(seconds)")
        } else {
            let error = await expectError(.clockSkew) { try await sign() }
            #expect(error?.recovery == .correctClock)
        }
    }
}
