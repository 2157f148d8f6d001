package import AuthContract
internal import AuthService

/// The signer and the time that a request's headers name. They are not proven, and used only for logs and metrics.
extension HeaderFields {
    /// The app, if the header holds an id.
    var claimedApp: AppID? { values(HeaderName.appID).first.flatMap { try? AppID($0) } }

    /// The device, if the header holds an id.
    var claimedDevice: DeviceID? { values(HeaderName.deviceID).first.flatMap { try? DeviceID($0) } }

    /// The claimed time of the signature, in unix seconds: the timestamp of scheme 1, or the `created` parameter of
    /// `Signature-Input` (RFC 9421 section 2.3).
    var claimedTime: Int64? {
        if let timestamp = values(HeaderName.timestamp).first.flatMap({ Int64($0) }) { return timestamp }
        guard let input = values(HeaderName.signatureInput).first, let found = input.firstRange(of: ";created=") else {
            return nil
        }
        return Int64(input[found.upperBound...].prefix { $0.isASCII && $0.isNumber })
    }
}

extension DeviceID {
    /// The id as it is logged: its hash. To find the log lines of an id, compute its hash with
    /// `printf %s "$DEVICE_ID" | sha256sum | cut -c1-16`. To find the device of a hash, use
    /// `synheart-auth devices list --device`.
    package var logged: String { DeviceHash(of: self).text }
}
