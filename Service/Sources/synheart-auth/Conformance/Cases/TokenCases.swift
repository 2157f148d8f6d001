import AuthContract
import Bytes
import Crypto
import StrictJSON

extension ConformanceCase {
    /// Device tokens, the keys that sign them, and discovery.
    static let tokens: [ConformanceCase] = [
        .init("token", "Device tokens", "a token is signed by a published key and names app, device and key") { stage in
            let phone = try await stage.phone()
            let (header, claims) = try await stage.token(of: phone)
            try stage.require(header["alg"] == "ES256", "alg is \(header["alg"]?.text() ?? "missing")")
            let expected: [(String, JSONValue)] = [
                ("sub", .string(phone.id.text)), ("app_id", .string(stage.appID.text)),
                ("client_id", .string(stage.appID.text)), ("platform", .string(phone.platform.rawValue)),
            ]
            for (name, value) in expected {
                try stage.require(claims[name] == value, "\(name) is \(claims[name]?.text() ?? "missing")")
            }
            let thumbprint = claims["cnf"]?.object?["jkt"]?.string
            try stage.require(
                thumbprint == DevicePublicKey(phone.key.publicKey).thumbprint, "cnf.jkt is not the key's thumbprint")
            guard let issued = claims["iat"]?.integer, let end = claims["exp"]?.integer else {
                throw CaseEnd.fails("no iat or exp")
            }
            try stage.require(-30...30 ~= UnixTime(issued) - stage.now, "iat is not now")
            try stage.require(1...600 ~= UnixTime(end) - UnixTime(issued), "it lives too long")
        },
        .init("token-audience", "Device tokens", "an audience that the app does not list is refused") { stage in
            let phone = try await stage.phone()
            let body = TokenRequest(audience: "https://conformance.invalid").bytes
            try await stage.refused(try phone.signed(.token, body, at: stage.now), .invalidRequest)
        },
        .init("token-unsigned", "Device tokens", "an unsigned request gets no token") { stage in
            try await stage.refused(.json(.token, Array("{}".utf8)), .invalidRequest)
        },
        .init("key-set", "Key set", "the keys are public, two or more, and may be cached") { stage in
            let answer = try await stage.accepted(WireRequest(method: "GET", target: Route.keySet.rawValue))
            let cache = answer.headers.values("Cache-Control").joined(separator: ",")
            try stage.require(cache.contains("max-age="), "Cache-Control is \(cache)")
            let keys = answer.json["keys"]?.array ?? []
            try stage.require(keys.count >= 2, "there are \(keys.count): no standby key")
            try stage.require(keys.allSatisfy { $0.object?["d"] == nil }, "a private key is published")
            let same = try await stage.accepted(WireRequest(method: "GET", target: Route.wellKnownKeySet.rawValue))
            try stage.require(same.json == answer.json, "\(Route.wellKnownKeySet.rawValue) is another set")
        },
        .init("discovery", "Discovery", "the discovery documents name the origin and its keys") { stage in
            for route in [Route.openIDConfiguration, .authorizationServer] {
                let answer = try await stage.send(WireRequest(method: "GET", target: route.rawValue))
                guard answer.code != ErrorCode.notFound.rawValue else {
                    throw CaseEnd.skipped("there are none: server.public_origin is not set")
                }
                let issuer = answer.json["issuer"]?.string
                let isOrigin = issuer.flatMap { try? RequestOrigin($0) } == (try RequestOrigin(stage.options.url))
                try stage.require(isOrigin, "issuer is \(issuer ?? "missing"), not \(stage.options.url)")
                let keys = answer.json["jwks_uri"]?.string
                try stage.require(
                    keys == issuer.map { $0 + Route.wellKnownKeySet.rawValue }, "jwks_uri is \(keys ?? "missing")")
            }
            let (_, claims) = try await stage.token(of: try await stage.phone())
            try stage.require(
                claims["iss"]?.string.flatMap { try? RequestOrigin($0) } == (try RequestOrigin(stage.options.url)),
                "a token's iss is \(claims["iss"]?.text() ?? "missing")")
        },
    ]
}

extension Stage {
    /// Fetches a device token, and returns its header and claims. Fails the case if no published key signed the token.
    fileprivate func token(of phone: Phone) async throws -> (header: JSONObject, claims: JSONObject) {
        let answer = try await accepted(try phone.signed(.token, at: now), "a token")
        guard let token = try? TokenResponse(parsing: answer.body).token else {
            throw CaseEnd.fails("the answer has no token")
        }
        let parts = token.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3, let header = Self.object(parts[0]), let claims = Self.object(parts[1]),
            let signature = Base64.url.decode(parts[2]).flatMap({ try? RequestSignature(raw: $0) })
        else { throw CaseEnd.fails("the token is no JWT") }
        let keys = try await accepted(WireRequest(method: "GET", target: Route.keySet.rawValue)).json["keys"]?.array
        let message = Array("\(parts[0]).\(parts[1])".utf8)
        let isSigned = (keys ?? []).compactMap(\.object).contains { key in
            guard key["kid"] == header["kid"], let x = key["x"]?.string.flatMap({ Base64.url.decode($0) }),
                let y = key["y"]?.string.flatMap({ Base64.url.decode($0) }),
                let publicKey = try? DevicePublicKey([4] + x + y)
            else { return false }
            return signature.isValid(for: message, by: publicKey)
        }
        try require(isSigned, "no published key signed the token")
        return (header, claims)
    }

    private static func object(_ part: String) -> JSONObject? {
        Base64.url.decode(part).flatMap { try? JSONValue(parsing: $0).object }
    }
}
