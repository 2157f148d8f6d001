// Stand-in for CryptoKit: the Secure Enclave's availability, which a test can take away.
import Foundation

public enum SecureEnclave {
    private static let lock = NSLock()
    nonisolated(unsafe) private static var available = true

    public static var isAvailable: Bool { lock.withLock { available } }

    /// As in a simulator.
    public static func setAvailable(_ isAvailable: Bool) { lock.withLock { available = isAvailable } }
}
