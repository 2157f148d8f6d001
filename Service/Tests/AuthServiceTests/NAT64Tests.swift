import AuthContract
import AuthService
import Testing

@Suite("NAT64")
struct NAT64Tests {
    private static let texts = [
        "2001:db8::/32", "2001:db8:100::/40", "2001:db8:122::/48", "2001:db8:122:300::/56", "2001:db8:122:344::/64",
        "2001:db8:122:344::/96",
    ]

    @Test(
        "an address embeds an IPv4 address after its prefix, as in the examples of RFC 6052 section 2.4",
        arguments: zip(
            texts,
            [
                "2001:db8:c000:221::", "2001:db8:1c0:2:21::", "2001:db8:122:c000:2:2100::", "2001:db8:122:3c0:0:221::",
                "2001:db8:122:344:c0:2:2100::", "2001:db8:122:344::192.0.2.33",
            ]))
    func examples(prefix: String, address: String) throws {
        #expect(try ClientAddress(address, nat64: NAT64Prefixes([prefix])).network == "192.0.2.33")
        #expect(ClientAddress(address).network.hasSuffix("::/64"))
    }

    @Test("of prefixes that contain each other the longest counts, in any order")
    func longest() throws {
        for texts in [Self.texts, Self.texts.reversed()] {
            let prefixes = try NAT64Prefixes(texts)
            #expect(ClientAddress("2001:db8:122:344::192.0.2.33", nat64: prefixes).network == "192.0.2.33")
            #expect(ClientAddress("2001:db8:c000:221::", nat64: prefixes).network == "192.0.2.33")
        }
    }

    @Test(
        "the well-known prefix always counts, and its neighbours do not",
        arguments: [
            ("64:ff9b::192.0.2.33", "192.0.2.33"), ("64:FF9B::c000:221", "192.0.2.33"), ("64:ff9b::1%eth0", "0.0.0.1"),
            ("::ffff:192.0.2.33", "192.0.2.33"), ("64:ff9b:1::192.0.2.33", "64:ff9b:1:0::/64"),
            ("64:ff9b::1:c000:221", "64:ff9b:0:0::/64"), ("64:ff9b:0:0:1::c000:221", "64:ff9b:0:0::/64"),
            ("64:ff9a::192.0.2.33", "64:ff9a:0:0::/64"), ("::192.0.2.33", "0:0:0:0::/64"),
        ])
    func wellKnown(address: String, network: String) throws {
        #expect(ClientAddress(address).network == network)
        #expect(try ClientAddress(address, nat64: NAT64Prefixes(["2001:db8:64::/96"])).network == network)
    }

    @Test("an address whose bits 64 to 71 are not zero embeds nothing")
    func reservedBits() throws {
        let prefixes = try NAT64Prefixes(["2001:db8:122:344::/64"])
        #expect(ClientAddress("2001:db8:122:344:1c0:2:2100::", nat64: prefixes).network == "2001:db8:122:344::/64")
    }

    @Test(
        "a malformed prefix is refused",
        arguments: [
            "", "/", "/96", "2001:db8::", "2001:db8::/", "2001:db8::/33", "2001:db8::/128", "2001:db8::/0",
            "2001:db8::/+96",
            "2001:db8::/096", "2001:db8::/96 ", " 2001:db8::/96", "2001:db8::/96/96", "2001:db8::1/96",
            "2001:db8:1::/32",
            "2001:db8:0:0:100::/96", "2001:db8::%eth0/96", "10.0.0.0/32", "::/96", "::ffff:0:0/96", "0:0:1::/96",
            "2001:db8::/９６",
        ])
    func malformed(text: String) {
        #expect(throws: ContractError.self) { try NAT64Prefixes([text]) }
    }

    @Test("at most 16 prefixes are accepted")
    func many() throws {
        let texts = (0..<17).map { "2001:db8:\($0)::/48" }
        _ = try NAT64Prefixes(Array(texts.dropLast()))
        #expect(throws: ContractError.self) { try NAT64Prefixes(texts) }
    }
}
