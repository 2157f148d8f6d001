import AuthContract
import Bytes
import Crypto
import StrictJSON

extension ConformanceCase {
    /// Requests under scheme 1: correct ones, and ones with changed content, another key, other ids or a wrong time.
    static let signatures: [ConformanceCase] = [
        .init("signed-accepted", "Scheme 1", "a signed request is accepted") { stage in
            let phone = try await stage.phone()
            try await stage.accepted(try phone.signed(.status, at: stage.now))
            try await stage.accepted(try phone.signed(.token, at: stage.now), "a token")
        },
        signature("signed-method", "another method") { phone, now in
            try phone.signed("GET", Route.token.rawValue, Array("{}".utf8), at: now).method("POST")
        },
        signature("signed-path", "another path") { phone, now in
            try phone.signed(.rotateKey, at: now).to(Route.token.rawValue)
        },
        signature("signed-body", "another body") { phone, now in
            try phone.signed(.token, at: now).with(body: Array("{ }".utf8))
        },
        signature("signed-no-body", "a body where none was signed") { phone, now in
            try phone.signed("POST", Route.token.rawValue, [], at: now).with(body: Array("{}".utf8))
                .with([("Content-Type", "application/json")])
        },
        signature("signed-time", "another time") { phone, now in
            try phone.signed(.status, at: now - 1).with([(HeaderName.timestamp, now.description)])
        },
        signature("signed-foreign-key", "the signature of another key") { phone, now in
            try phone.signed(.status, at: now, by: .init())
        },
        .init("signed-other-device", "Scheme 1", "a request under another device's id is INVALID_SIGNATURE") { stage in
            let (phone, other) = (try await stage.phone(), try await stage.register())
            try await stage.refused(
                try phone.signed(.status, at: stage.now).with([(HeaderName.deviceID, other.id.text)]),
                .invalidSignature)
        },
        .init("signed-other-app", "Who may do what", "a device is not registered under another app") { stage in
            guard let app = stage.options.otherAppID else { throw CaseEnd.skipped("--other-app names none") }
            let phone = try await stage.phone()
            try await stage.refused(
                try phone.signed(.status, at: stage.now).with([(HeaderName.appID, app.text)]), .notRegistered)
        },
        .init("freshness-past", "Freshness", "a request of 700 s ago is CLOCK_SKEW") { stage in
            let phone = try await stage.phone()
            try await stage.refused(try phone.signed(.status, at: stage.now - 700), .clockSkew)
        },
        .init("freshness-future", "Freshness", "a request of 400 s ahead is CLOCK_SKEW") { stage in
            let phone = try await stage.phone()
            try await stage.refused(try phone.signed(.status, at: stage.now + 400), .clockSkew)
        },
        .init("ids-in-body", "Order", "ids in a body that differ from the headers' are refused") { stage in
            let (phone, other) = (try await stage.phone(), try await stage.register())
            let body = try phone.rotation(to: .init(), device: other.id)
            try await stage.refused(try phone.signed(.rotateKey, body, at: stage.now), .invalidRequest)
        },
    ]

    /// The forms of the headers of scheme 1.
    static let signatureForms: [ConformanceCase] = [
        .init("headers-missing", "Strictness", "a request without one of its six headers is refused") { stage in
            let phone = try await stage.phone()
            for name in six {
                let request = try phone.signed(.status, at: stage.now).with([(name, nil)])
                try await stage.refused(request, .invalidRequest, what: name)
            }
        },
        .init("headers-twice", "Strictness", "a request with one of its six headers twice is refused") { stage in
            let phone = try await stage.phone()
            for name in six {
                var request = try phone.signed(.status, at: stage.now)
                request.headers.append((name, request.value(name)))
                // The request has the header twice. A proxy may join the two values, and the service may refuse the joined value
                // with another code.
                try await stage.refused(request, .invalidRequest, .unsupportedSigVersion, what: name)
            }
        },
        form("signature-form", "a signature that is not padded base64 of strict DER", HeaderName.signature) { text in
            guard let signature = try? RequestSignature(base64: text) else { return [] }
            let der = signature.der
            return [
                Base64.standard.encode(signature.raw), Base64.standard.encode(der + [0]),
                Base64.standard.encode([0x30, 0x81] + der.dropFirst()), Base64.url.encode([0xFB, 0xFF] + der), "",
                "\(text.prefix(8)) \(text.dropFirst(8))", String(repeating: "A", count: 4096),
            ]
        },
        form("timestamp-form", "a timestamp that is not ten digits", HeaderName.timestamp) { text in
            ["\(text.dropLast())", "0\(text)", "+\(text)", "\(text)000", "\(text).0", ""]
        },
        form("device-id-form", "a device id in capitals", HeaderName.deviceID) { [$0.uppercased()] },
        form("nonce-form", "a nonce that is not a version 4 UUID", HeaderName.nonce) { _ in
            ["1", "00000000-0000-1000-8000-000000000000", ""]
        },
        .init("nonce-case", "Scheme 1", "a nonce may have capitals") { stage in
            let phone = try await stage.phone()
            let request = try phone.signed(.status, at: stage.now)
            try await stage.accepted(
                request.with([(HeaderName.nonce, request.value(HeaderName.nonce).uppercased())]))
        },
        .init("signature-zero", "Names and encodings", "a signature of zeros is refused") { stage in
            let phone = try await stage.phone()
            try await stage.refused(
                try phone.signed(.status, at: stage.now).with([(HeaderName.signature, "MAYCAQACAQA=")]),
                .invalidSignature, .invalidRequest)
        },
        .init("signature-high-s", "Names and encodings", "a signature with either s is accepted") { stage in
            let phone = try await stage.phone()
            for wantsHigh in [false, true] {
                let request = try phone.signed(.status, at: stage.now)
                let signature = try RequestSignature(base64: request.value(HeaderName.signature))
                let chosen = signature.isHigh == wantsHigh ? signature : try signature.withOtherS
                try await stage.accepted(
                    request.with([(HeaderName.signature, chosen.base64)]), wantsHigh ? "high s" : "low s")
            }
        },
        .init("version-form", "Strictness", "another signature version is UNSUPPORTED_SIG_VERSION") { stage in
            let phone = try await stage.phone()
            for version in ["0", "2", "01"] {
                let request = try phone.signed(.status, at: stage.now).with([(HeaderName.signatureVersion, version)])
                try await stage.refused(request, .unsupportedSigVersion, what: version)
            }
        },
        .init("two-schemes", "Scheme 2", "a request that claims both schemes is refused") { stage in
            let phone = try await stage.phone()
            try await stage.refused(
                try phone.signed(.status, at: stage.now).with([(HeaderName.signatureInput, "synheart=()")]),
                .invalidRequest)
        },
    ]

    /// The headers of scheme 1.
    private static let six = [
        HeaderName.appID, HeaderName.deviceID, HeaderName.signature, HeaderName.timestamp, HeaderName.nonce,
        HeaderName.signatureVersion,
    ]

    private static func signature(
        _ id: String, _ what: String, _ request: @escaping @Sendable (Phone, UnixTime) throws -> WireRequest
    ) -> ConformanceCase {
        .init(id, "Scheme 1", "\(what) is INVALID_SIGNATURE") { stage in
            let phone = try await stage.phone()
            try await stage.refused(try request(phone, stage.now), .invalidSignature)
        }
    }

    private static func form(
        _ id: String, _ what: String, _ header: String, _ values: @escaping @Sendable (String) -> [String]
    ) -> ConformanceCase {
        .init(id, "Strictness", "\(what) is refused") { stage in
            let phone = try await stage.phone()
            let request = try phone.signed(.status, at: stage.now)
            for value in values(request.value(header)) {
                try await stage.refused(request.with([(header, value)]), .invalidRequest, what: value)
            }
        }
    }
}

extension WireRequest {
    fileprivate func method(_ method: String) -> WireRequest {
        var request = self
        request.method = method
        return request
    }
}

extension RequestSignature {
    /// The order of P-256.
    private static let order: [UInt8] = [
        0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xBC, 0xE6,
        0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
    ]

    /// Whether the first bit of s is set. Then s is greater than half of the order.
    var isHigh: Bool { raw.count == 64 && raw[32] >= 0x80 }

    /// `(r, n - s)`: a second valid signature of the same message, which anyone can compute without the key.
    var withOtherS: RequestSignature {
        get throws {
            var (other, borrow) = ([UInt8](), 0)
            for (n, s) in zip(Self.order, raw.suffix(32)).reversed() {
                let difference = Int(n) - Int(s) - borrow
                borrow = difference < 0 ? 1 : 0
                other.insert(UInt8(truncatingIfNeeded: difference & 0xFF), at: 0)
            }
            return try RequestSignature(raw: Array(r) + other)
        }
    }
}
