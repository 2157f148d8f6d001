#if canImport(Security)
    internal import Foundation
    internal import Security

    /// What a status of Security.framework or LocalAuthentication means for a key (RFC-AUTH-MOBILE-0001 section 11.1).
    enum AppleKeychainStatus {
        static func keyStoreError(_ status: OSStatus) -> KeyStoreError {
            let text = SecCopyErrorMessageString(status, nil) as String? ?? ""
            return KeyStoreError(code(status), status: Int(status), reason: text)
        }

        static func keyStoreError(domain: String, code: Int) -> KeyStoreError {
            if domain == NSOSStatusErrorDomain, let status = OSStatus(exactly: code) { return keyStoreError(status) }
            if domain == localAuthentication {
                return KeyStoreError(self.code(localAuthentication: code), status: code, reason: "LocalAuthentication")
            }
            return KeyStoreError(.failed, status: code, reason: domain)
        }

        private static let localAuthentication = "com.apple.LocalAuthentication"

        private static func code(_ status: OSStatus) -> KeyStoreError.Code {
            switch status {
            // The key was deleted; the biometric context changed.
            case errSecItemNotFound: .notFound
            case errSecAuthFailed: .invalidated
            // The device is locked, not unlocked since boot, without a keychain, or in dark wake.
            case errSecInteractionNotAllowed, errSecNotAvailable, errSecInDarkWake: .unavailable
            case errSecUnimplemented, errSecMissingEntitlement: .unsupported
            default: .failed
            }
        }

        private static func code(localAuthentication code: Int) -> KeyStoreError.Code {
            switch code {
            // LAError.biometryLockout.
            case -8: .invalidated
            // systemCancel, appCancel, notInteractive.
            case -4, -9, -1004: .unavailable
            default: .failed
            }
        }
    }
#endif
