@_spi(Service) import AuthContract
import Testing

@Suite("Lenient paths")
struct LenientPathTests {
    @Test(
        "a prefix covers other spellings of itself and of what is below it",
        arguments: [
            "/v1/pay", "/v1/pay/", "/v1/pay/now", "/v1//pay", "/V1/PAY", "/v1/%70ay", "/v1/%50AY//", "/v1/pay.json",
            "/v1/pay.",
            "/v1/pay%2ejson/now", "/v1%2fpay", "/v1/pay/%ff",
        ])
    func covered(path: String) {
        for prefix in ["/v1/pay", "/V1/Pay", "/v1/pay/", "/v1/%70ay", "/"] {
            #expect(LenientPath(path).isCovered(by: LenientPath(prefix)), "\(prefix)")
        }
    }

    @Test(
        "a prefix does not cover its neighbours",
        arguments: [
            "", "/", "/v1", "/v1/payment", "/v1/pay-now", "/v1.json/pay", "/x/v1/pay", "/v1/pa", "/v1/pay%20",
            "/v1/%2570ay",
        ])
    func notCovered(path: String) {
        for prefix in ["/v1/pay", "/v1/pay/"] {
            #expect(!LenientPath(path).isCovered(by: LenientPath(prefix)), "\(prefix)")
        }
    }

    @Test(
        "letters beyond ASCII are compared without case",
        arguments: [("/caf%C3%A9", "/CAF%C3%89"), ("/key", "/%E2%84%AAey"), ("/pass", "/pa%C5%BFs")])
    func otherLetters(prefix: String, path: String) {
        #expect(LenientPath(path).isCovered(by: LenientPath(prefix)))
    }

    @Test("every escape of a byte that servers read as structure or drop makes a path ambiguous, and no other")
    func escapes() {
        let digits = Array("0123456789abcdef")
        let special = Set("/\\%;?#".utf8).union(0x00...0x1F).union([0x7F])
        for byte in UInt8.min...UInt8.max {
            let escape = "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
            for text in [escape, escape.uppercased()] {
                #expect(LenientPath.isAmbiguous("/a\(text)b") == special.contains(byte), "\(text)")
            }
        }
    }

    @Test(
        "a path that servers read differently is ambiguous",
        arguments: [
            "//", "//x/v1", "/a;b", #"/a\b"#, "/a%", "/a%2", "/a%zz", "/a%+1", "/%%70ay", "/a%20", "/a%20%20", "%",
            "/a%250",
        ])
    func ambiguous(path: String) { #expect(LenientPath.isAmbiguous(path)) }

    @Test(
        "any other path is not ambiguous",
        arguments: ["", "/", "/a//b", "/a/", "/a%20b", "/a%20/", "/a.b", "/a+b", "/%C3%A9", "/a:b@c,d!~"])
    func plain(path: String) { #expect(!LenientPath.isAmbiguous(path)) }
}
