/// The device's platform, which determines the kind of attestation.
public enum Platform: String, Sendable, Hashable, CaseIterable {
    /// Apple's platforms: App Attest.
    case ios
    /// Android: Play Integrity, key attestation or both.
    case android
}
