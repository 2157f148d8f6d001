/// Whose phone it is, and with that whose attestation counts.
public enum Platform: String, Sendable, Hashable, CaseIterable {
    case ios, android
}
