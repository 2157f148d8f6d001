import Foundation
import Testing

@testable import AuthContract

@Suite struct AppIDs {
    @Test(arguments: [
        "a", "Z", "0", "com.example.app", "A-b_c.9", "_next_", "next", "a_nexT", "_nex",
        String(repeating: "x", count: 128),
    ])
    func `a valid app id is accepted`(_ text: String) throws {
        #expect(try AppID(text).text == text)
        #expect(try AppID(text).description == text)
    }

    @Test(arguments: [
        "", " ", "a b", "a/b", "a\n", "ä", "a\u{0}", "app:1", "com.example.app_next", "_next", "K\u{212A}",
        String(repeating: "x", count: 129), "e\u{301}", "😀",
    ])
    func `a malformed app id is refused`(_ text: String) {
        #expect(throws: ContractError.self) { try AppID(text) }
    }

    @Test func `app ids differ by case`() throws {
        #expect(try AppID("a") != AppID("A"))
    }
}

@Suite struct UUIDs {
    static let good = "123e4567-e89b-42d3-a456-426614174000"
    static let bad = [
        "", "123e4567-e89b-42d3-a456-42661417400", "123e4567-e89b-42d3-a456-4266141740000",
        "123e4567e89b42d3a456426614174000", "{123e4567-e89b-42d3-a456-426614174000}",
        "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-52d3-a456-426614174000",
        "123e4567-e89b-42d3-7456-426614174000", "123e4567-e89b-42d3-c456-426614174000",
        "123g4567-e89b-42d3-a456-426614174000", "123e4567-e89b-42d3-a456-42661417400 ",
        " 123e4567-e89b-42d3-a456-42661417400", "123e4567--e89b42d3-a456-426614174000",
        "123e4567-e89b-42d3-a456-42661417400é", "00000000-0000-0000-0000-000000000000",
        "123e4567-e89b-42d3-a456_426614174000", "00000000-0000-4000-8800-0000000000000",
        "urn:uuid:123e4567-e89b-42d3-a456-426614174000",
    ]

    @Test(arguments: ["8", "9", "a", "b"]) func `every variant of RFC 9562 is read`(_ digit: String) throws {
        let text = "123e4567-e89b-42d3-\(digit)456-426614174000"
        #expect(try DeviceID(text).text == text)
    }

    @Test(arguments: bad) func `a malformed UUID is refused`(_ text: String) {
        #expect(throws: ContractError.self) { try DeviceID(text) }
        #expect(throws: ContractError.self) { try RequestNonce(text) }
    }

    @Test func `a device id in upper case is refused`() {
        #expect(throws: ContractError.self) { try DeviceID(Self.good.uppercased()) }
        #expect(throws: ContractError.self) { try DeviceID("123e4567-e89b-42d3-A456-426614174000") }
    }

    @Test func `a nonce in either case is the same nonce`() throws {
        #expect(try RequestNonce(Self.good.uppercased()) == RequestNonce(Self.good))
        #expect(try RequestNonce(Self.good.uppercased()).text == Self.good)
    }

    @Test func `the bytes are those of the text`() throws {
        #expect(try DeviceID(Self.good).bytes == hex("123e4567e89b42d3a456426614174000"))
        #expect(try RequestNonce(Self.good).bytes == DeviceID(Self.good).bytes)
    }

    @Test(arguments: [0x00, 0xFF, 0x5A] as [UInt8]) func `a new UUID has version 4 and the variant of RFC 9562`(
        of byte: UInt8
    ) throws {
        let made = DeviceID(from: FixedRandom(byte: byte))
        #expect(try DeviceID(made.text) == made)
        #expect(try RequestNonce(RequestNonce(from: FixedRandom(byte: byte)).text).bytes == made.bytes)
    }

    @Test func `new UUIDs differ`() {
        #expect(Set((0..<1000).map { _ in DeviceID(from: SystemRandom()) }).count == 1000)
    }

    @Test func `a written UUID is read as the same`() throws {
        var random = SeededNumbers(seed: 1)
        for _ in 0..<500 {
            struct Given: RandomSource {
                let given: [UInt8]
                func bytes(_ count: Int) -> [UInt8] { given }
            }
            let uuid = RandomUUID(from: Given(given: random.bytes(16)))
            #expect(RandomUUID(uuid.text, upperCase: false) == uuid)
            #expect(RandomUUID(uuid.text.uppercased(), upperCase: true) == uuid)
            let digits = uuid.bytes.map { String(format: "%02x", $0) }.joined()
            #expect(uuid.text.replacingOccurrences(of: "-", with: "") == digits)
            #expect(uuid.text.enumerated().filter { $1 == "-" }.map(\.offset) == [8, 13, 18, 23])
        }
    }

    @Test func `only hexadecimal digits are read as digits`() {
        let text = Array("123e4567-e89b-42d3-a456-426614174000".utf8)
        for position in text.indices {
            let (lower, either) =
                switch position {
                case 8, 13, 18, 23: ("-", "-")
                case 14: ("4", "4")
                case 19: ("89ab", "89abAB")
                default: ("0123456789abcdef", "0123456789abcdefABCDEF")
                }
            for character in 0...0x7F as ClosedRange<UInt8> {
                var changed = text
                changed[position] = character
                let given = String(decoding: changed, as: UTF8.self)
                #expect((RandomUUID(given, upperCase: false) != nil) == lower.utf8.contains(character), "\(given)")
                #expect((RandomUUID(given, upperCase: true) != nil) == either.utf8.contains(character), "\(given)")
            }
            // Replaces two bytes by a character of two bytes, so that the length stays correct.
            for scalar in ["\u{80}", "\u{E1}", "\u{17F}", "\u{7FF}"] where position + 1 < text.count {
                var changed = text
                changed.replaceSubrange(position..<position + 2, with: scalar.utf8)
                let given = String(decoding: changed, as: UTF8.self)
                #expect(given.utf8.count == 36 && RandomUUID(given, upperCase: true) == nil, "\(given)")
            }
        }
    }
}

@Suite struct UnixTimes {
    @Test(arguments: ["1700000000", "0000000000", "9999999999"]) func `ten digits are a time`(_ text: String) throws {
        #expect(try UnixTime(header: text).seconds == Int64(text))
    }

    @Test(arguments: [
        "", "170000000", "17000000000", "1700000000 ", " 1700000000", "+170000000", "-170000000", "1700000.00",
        "1.70000e09", "٠١٢٣٤٥٦٧٨٩", "170000000a", "0x17000000", "1700000000\n",
    ])
    func `a malformed timestamp is refused`(_ text: String) {
        #expect(throws: ContractError.self) { try UnixTime(header: text) }
    }

    @Test(arguments: [0, 9, 10, 1_700_000_000, -1, .min, .max] as [Int64])
    func `a message has the digits of its time`(_ seconds: Int64) {
        let time = UnixTime(seconds)
        let message = SchemeOneMessage.bytes(method: "GET", path: "/", timestamp: time, body: [])
        #expect(message == Array("GET\n/\n\(seconds)\n".utf8) && time.description == "\(seconds)")
    }

    @Test func `arithmetic is clamped to the range`() {
        #expect(UnixTime(.max) + 1 == UnixTime(.max))
        #expect(UnixTime(.min) + -1 == UnixTime(.min))
        #expect(UnixTime(.min) - (1 as Int64) == UnixTime(.min))
        #expect(UnixTime(.max) - (-1 as Int64) == UnixTime(.max))
        #expect(UnixTime(0) - Int64.min == UnixTime(.max))
        #expect((UnixTime(.max) - UnixTime(-1)) as Int64 == .max)
        #expect((UnixTime(.min) - UnixTime(1)) as Int64 == .min)
        #expect((UnixTime(10) - UnixTime(3)) as Int64 == 7)
        #expect(UnixTime(10) + 5 - (3 as Int64) == UnixTime(12))
        #expect(UnixTime(1) < UnixTime(2))
    }
}

@Suite struct Routes {
    @Test func `the routes are those of the contract`() {
        let table: [String: String] = [
            "/auth/v1/device/challenge": "POST", "/auth/v1/device/register": "POST",
            "/auth/v1/device/rotate-key": "POST", "/auth/v1/device/status": "GET", "/auth/v1/device": "DELETE",
            "/auth/v1/token": "POST", "/auth/v1/verify": "POST", "/auth/v1/forward": "GET",
            "/auth/v1/.well-known/jwks.json": "GET",
            "/.well-known/jwks.json": "GET", "/.well-known/openid-configuration": "GET",
            "/.well-known/oauth-authorization-server": "GET",
        ]
        #expect(Dictionary(uniqueKeysWithValues: Route.allCases.map { ($0.rawValue, $0.method) }) == table)
    }
}
