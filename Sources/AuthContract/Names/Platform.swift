/// The device's platform, which decides the attestation that counts.
public enum Platform: String, Sendable, Hashable, CaseIterable {
    /// Apple's platforms: App Attest.
    case ios
    /// Android: Play Integrity, key attestation or both.
    case android
}
