public import AppAttest
public import AttestationTestKit
public import Foundation

/// A simulated Apple with one attested key, made once for all inputs.
public struct Workshop: @unchecked Sendable {  // libFuzzer runs one input after another, on one thread.
    /// The time of every check.
    public let now = Date(timeIntervalSince1970: 1_790_000_000)
    /// The app of every device.
    public let appID = "TEAMID1234.com.example.app"
    /// The app, as a policy names it.
    public let app: AppleAppID
    /// The authority that verifiers trust.
    public let authority: AppleAuthority
    /// An untrusted authority with the same names and other keys.
    public let other: AppleAuthority
    /// The attested key.
    public let key = AppleAttestKey()
    /// Another key.
    public let otherKey = AppleAttestKey()
    /// The attested key's id.
    public let keyID: KeyID
    /// The roots of `authority`.
    public let anchors: TrustAnchors

    /// Makes everything that the fuzzers share. Stops the process if the test kit cannot make it.
    public init() {
        var options = AppleAuthority.Options()
        // Signing on P-384 costs thirty times as much.
        options.intermediateCurve = .p256
        guard let app = AppleAppID(appID),
            let authority = try? AppleAuthority(from: now.addingTimeInterval(-30 * 86400), options: options),
            let other = try? AppleAuthority(from: now.addingTimeInterval(-30 * 86400), options: options),
            let keyID = KeyID(key.keyID), let anchors = TrustAnchors(pem: authority.rootsPEM)
        else { fatalError("the test kit made no authority") }
        (self.app, self.authority, self.other, self.keyID, self.anchors) = (app, authority, other, keyID, anchors)
    }
}
