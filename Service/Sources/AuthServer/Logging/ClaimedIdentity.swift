internal import AuthContract
internal import AuthService
internal import Crypto
internal import HTTPTypes

/// What the headers of a request say of who signed it and when. Nothing of it is proven: it is for logs and metrics.
struct ClaimedIdentity: Sendable {
    var app: AppID?
    var device: DeviceID?
    /// Unix seconds.
    var time: Int64?

    init(app: AppID? = nil, device: DeviceID? = nil) {
        self.app = app
        self.device = device
    }

    /// What a request says that verified.
    init(_ verified: VerifiedRequest) {
        (app, device, time) = (verified.appID, verified.deviceID, verified.signedAt.seconds)
    }

    /// What a request of a device's own says.
    init(_ fields: HTTPFields) {
        func first(_ name: HTTPField.Name) -> String? { fields[fields: name].first?.value }
        self.init(
            app: first(.appID), device: first(.deviceID), timestamp: first(.timestamp), input: first(.signatureInput))
    }

    /// What a request that somebody asks about says.
    init(_ fields: HeaderFields) {
        self.init(
            app: fields.values(HeaderName.appID).first, device: fields.values(HeaderName.deviceID).first,
            timestamp: fields.values(HeaderName.timestamp).first,
            input: fields.values(HeaderName.signatureInput).first)
    }

    private init(app: String?, device: String?, timestamp: String?, input: String?) {
        self.app = app.flatMap { try? AppID($0) }
        self.device = device.flatMap { try? DeviceID($0) }
        time = timestamp.flatMap { Int64($0) } ?? input.flatMap(Self.created)
    }

    /// The `created` parameter of a `Signature-Input` (RFC 9421 section 2.3).
    private static func created(_ input: String) -> Int64? {
        input.firstRange(of: ";created=").flatMap { found in
            Int64(input[found.upperBound...].prefix { $0.isASCII && $0.isNumber })
        }
    }
}

extension DeviceID {
    /// The id as it is logged: the first 16 hexadecimal digits of the SHA-256 of its text. An id has 122 random bits, so that
    /// nobody finds it from its hash; whoever has the id finds its lines:
    /// `printf %s "$DEVICE_ID" | sha256sum | cut -c1-16`.
    var logged: String {
        var text = text
        let digest = text.withUTF8 { SHA256.hash(data: $0) }
        return Hexadecimal.encode(digest.withUnsafeBytes { [UInt8]($0.prefix(8)) })
    }
}
