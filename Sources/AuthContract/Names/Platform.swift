/// The device's platform, which decides the attestation that counts.
public enum Platform: String, Sendable, Hashable, CaseIterable {
    case ios, android
}
