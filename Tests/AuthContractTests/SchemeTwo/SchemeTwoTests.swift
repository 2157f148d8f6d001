import AuthContract
import Crypto
import Foundation
import Testing

@Suite struct SchemeTwoSigning {
    let request = SchemeTwoRequest()

    @Test func `a signed request verifies`() throws {
        #expect(try request.verifies(with: request.lines()))
    }

    @Test func `the headers are the ones in the specification`() throws {
        let lines = try request.lines()
        #expect(lines.map(\.0) == ["X-App-ID", "X-Device-ID", "Content-Digest", "Signature-Input", "Signature"])
        #expect(lines[2].1 == "sha-256=:AVq9f1zFei3ZS3WQ8ErYCEJzkF7jPsXOvq5iJ2qX+GI=:")
        #expect(lines[3].1.hasPrefix(#"synheart=("@method" "@scheme" "@authority" "@path" "@query" "content-digest" "#))
        #expect(lines[4].1.hasPrefix("synheart=:"))
    }

    @Test func `written headers are read as the same values`() throws {
        let sent = try request.sign()
        let read = try SchemeTwoHeaders(HeaderFields(sent.fields.map { ($0.name, $0.value) }))
        #expect(read.appID == sent.appID && read.deviceID == sent.deviceID)
        #expect(read.contentDigest == sent.contentDigest)
        #expect(read.parameters == sent.parameters)
        #expect(read.parameters.created == UnixTime(request.created))
        #expect(read.parameters.nonce == request.nonce)
        #expect(read.parameters.keyID == SchemeTwoRequest.key.thumbprint)
        #expect(read.signature.raw == sent.signature.raw)
    }

    @Test func `the headers decide the scheme`() throws {
        guard case .two(let headers) = try SignatureHeaders(HeaderFields(request.lines())) else {
            Issue.record("not scheme 2")
            return
        }
        let either = try SignatureHeaders(HeaderFields(request.lines()))
        #expect(either.appID == headers.appID && either.deviceID == headers.deviceID)
        #expect(either.timestamp == UnixTime(request.created))
        let error = #expect(throws: ContractError.self) { try SchemeOneHeaders(HeaderFields(request.lines())) }
        #expect(error?.code == .unsupportedSigVersion)
    }

    @Test func `an empty body has a digest too`() throws {
        var read = request
        read.method = "GET"
        read.body = []
        #expect(try read.verifies(with: read.lines()))
        #expect(try read.lines()[2].1 == "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:")
    }

    @Test(arguments: [-1, Int64.min, 1_000_000_000_000_000, .max])
    func `a time that does not fit the field is refused`(seconds: Int64) throws {
        let nonce = try RequestNonce(request.nonce)
        #expect(throws: ContractError.self) {
            try SchemeTwoParameters(created: UnixTime(seconds), nonce: nonce, key: SchemeTwoRequest.key)
        }
    }

    @Test func `requests of all kinds verify`() throws {
        var random = SeededNumbers(seed: 9)
        for _ in 0..<100 {
            var any = SchemeTwoRequest()
            any.method = try random.one(of: ["GET", "PUT", "M-SEARCH", "x"])
            any.scheme = try random.one(of: ["http", "https"])
            any.authority = try random.one(of: ["a", "A.b:80", "a:443", "[::1]", "[2001:DB8::1]:8443", "127.0.0.1:1"])
            any.path = try random.one(of: [
                "/", "//", "/%0A", "/a;b=c/~", "/\"'", "/" + String(repeating: "x", count: 5000),
            ])
            any.query = try random.one(of: [nil, "", "?", "a=b&c", "\"@method\":", "%0A"])
            any.body = random.bytes(in: 0...300)
            any.appID = try random.one(of: ["a", "a.b-c_d"])
            #expect(try any.verifies(with: any.lines()))
        }
    }
}

/// Requests that another implementation signed, stored as vectors.
@Suite struct SchemeTwoVectors {
    struct File: Decodable {
        struct Case: Decodable, Sendable, CustomTestStringConvertible {
            let name: String
            let method: String
            let scheme: String
            let authority: String
            let path: String
            let query: String?
            let body: String
            let headers: [[String]]
            let signature_base: String
            var testDescription: String { name }
        }
        let public_key: String
        let thumbprint: String
        let cases: [Case]
    }

    static let cases = (try? Vectors.load("scheme_two", as: File.self).cases) ?? []

    @Test func `the file has 6 vectors`() { #expect(Self.cases.count == 6) }

    @Test(arguments: cases) func `the vector verifies`(_ vector: File.Case) throws {
        let file = try Vectors.load("scheme_two", as: File.self)
        let key = try DevicePublicKey(base64: file.public_key)
        #expect(key.thumbprint == file.thumbprint)
        let headers = try SchemeTwoHeaders(HeaderFields(vector.headers.map { ($0[0], $0[1]) }))
        let base = try headers.base(
            method: vector.method, origin: RequestOrigin(scheme: vector.scheme, authority: vector.authority),
            target: RequestTarget(path: RequestPath(vector.path), query: vector.query))
        #expect(String(decoding: base.bytes, as: UTF8.self) == vector.signature_base)
        #expect(headers.signature.isValid(for: base.bytes, by: key))
        #expect(headers.parameters.keyID == key.thumbprint)
        #expect(headers.contentDigest == ContentDigest(of: try [UInt8](base64: vector.body)))
        // When written again, the parameters keep the signer's order.
        #expect(headers.fields.map(\.value) == vector.headers.map { $0[1] })
    }
}

@Suite struct SchemeTwoTampering {
    typealias Change = @Sendable (inout SchemeTwoRequest) -> Void

    static let changes: [(String, Change)] = [
        ("@method", { $0.method = "PUT" }), ("the case of @method", { $0.method = "Post" }),
        ("@scheme", { $0.scheme = "http" }), ("@authority", { $0.authority = "api.example.org" }),
        ("the port of @authority", { $0.authority = "api.example.com:8443" }),
        ("the other scheme's port", { $0.authority = "api.example.com:80" }), ("@path", { $0.path = "/v1/hsi/" }),
        ("an escape in @path", { $0.path = "/v1/hs%69" }), ("@query", { $0.query = "a=b%20d" }),
        ("an escape in @query", { $0.query = "a=b+c" }), ("no @query", { $0.query = nil }),
        ("the body", { $0.body.append(0x20) }), ("no body", { $0.body = [] }),
    ]

    @Test(arguments: changes) func `a changed request does not verify`(_ name: String, _ change: Change) throws {
        let request = SchemeTwoRequest()
        let lines = try request.lines()
        var changed = request
        change(&changed)
        #expect(try !changed.verifies(with: lines), "\(name)")
    }

    static let headerChanges: [(String, Change)] = [
        ("X-App-ID", { $0.appID = "com.example.other" }),
        ("X-Device-ID", { $0.deviceID = "7f1c2a34-5b6d-4e8f-9a0b-1c2d3e4f5a6b" }), ("Content-Digest", { $0.body = [] }),
        ("Signature-Input", { $0.created += 1 }),
        ("Signature-Input", { $0.nonce = "123e4567-e89b-42d3-a456-426614174000" }), ("Signature", { $0.path = "/" }),
    ]

    /// A header of one request is moved into another request.
    @Test(arguments: headerChanges) func `a header of another request does not verify`(
        _ name: String, _ change: Change
    ) throws {
        let request = SchemeTwoRequest()
        var other = request
        change(&other)
        let foreign = try #require(try other.lines().first { $0.0 == name })
        let mixed = try request.lines().map { $0.0 == name ? foreign : $0 }
        #expect(try !request.verifies(with: mixed))
    }

    /// The body was replaced together with its digest, so the digest check passes and only the signature fails.
    @Test func `a changed body with its own digest does not verify`() throws {
        let request = SchemeTwoRequest()
        var changed = request
        changed.body = []
        let lines = try request.lines().map {
            $0.0 == "Content-Digest" ? ($0.0, ContentDigest(of: []).field) : $0
        }
        #expect(try !changed.verifies(with: lines))
    }

    /// If any byte of any header is changed, the parser refuses the header, or the signature no longer verifies.
    @Test func `a change of any byte of any header breaks the verification`() throws {
        let request = SchemeTwoRequest()
        let lines = try request.lines()
        var tried = 0
        for (index, line) in lines.enumerated() {
            for position in 0..<line.1.utf8.count {
                for flip: UInt8 in [0x01, 0x02, 0x08, 0x20, 0x40] {
                    var bytes = Array(line.1.utf8)
                    bytes[position] ^= flip
                    var changed = lines
                    changed[index].1 = String(decoding: bytes, as: UTF8.self)
                    tried += 1
                    #expect((try? request.verifies(with: changed)) != true, "\(changed[index])")
                }
            }
        }
        #expect(tried > 2000)
    }

    /// (r, n - s) is a valid signature too. A replay with it is still detected, because the replay claim is computed from the
    /// signed bytes, not from the signature.
    @Test func `the signature with n - s has the same base digest`() throws {
        let request = SchemeTwoRequest()
        let sent = try request.sign()
        let other = SchemeTwoHeaders(
            appID: sent.appID, deviceID: sent.deviceID, contentDigest: sent.contentDigest, parameters: sent.parameters,
            signature: try RequestSignature(
                raw: sent.signature.r + GroupOrder.minus(Array(sent.signature.raw.suffix(32)))))
        let lines = other.fields.map { ($0.name, $0.value) }
        #expect(try request.verifies(with: lines))
        let origin = try RequestOrigin("https://api.example.com")
        let target = try RequestTarget(path: RequestPath(request.path), query: request.query)
        #expect(
            try SchemeTwoHeaders(HeaderFields(lines)).base(method: "POST", origin: origin, target: target).digest
                == sent.base(method: "POST", origin: origin, target: target).digest)
    }
}
