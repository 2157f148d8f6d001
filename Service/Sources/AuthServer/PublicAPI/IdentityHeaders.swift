package import AuthContract

extension VerifiedIdentity {
    /// The headers that tell a backend who signed (protocol, *Forward authentication*).
    package static let headerNames = ["App", "Device", "Platform", "Assurance"].map { "X-Synheart-Verified-\($0)" }

    /// The values of `headerNames`, in the same order. The assurance is a dictionary of tokens (RFC 9651).
    package var headerValues: [String] {
        [
            appID.text, deviceID.text, platform.rawValue,
            "app=\(assurance.app.rawValue), key=\(assurance.key.rawValue)",
        ]
    }
}
