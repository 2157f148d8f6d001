#if canImport(Security)
    internal import Foundation
    internal import Security

    /// What a status of Security.framework or LocalAuthentication means for a key (RFC-AUTH-MOBILE-0001 section 11.1).
    enum AppleKeychainStatus {
        static func keyStoreError(_ status: OSStatus, accessGroup: String? = nil) -> KeyStoreError {
            KeyStoreError(code(status), status: Int(status), reason: text(status, accessGroup))
        }

        static func storageError(_ status: OSStatus, accessGroup: String?) -> StorageError {
            StorageError(
                text(status, accessGroup), status: Int(status), isMisconfigured: status == errSecMissingEntitlement)
        }

        private static func text(_ status: OSStatus, _ accessGroup: String?) -> String {
            guard status == errSecMissingEntitlement else {
                return SecCopyErrorMessageString(status, nil) as String? ?? "Keychain"
            }
            return accessGroup.map { "the app has no entitlement for the Keychain access group \($0)" }
                ?? "the app has no entitlement for the Keychain"
        }

        static func keyStoreError(domain: String, code: Int) -> KeyStoreError {
            if domain == NSOSStatusErrorDomain, let status = OSStatus(exactly: code) { return keyStoreError(status) }
            if domain == localAuthentication {
                return KeyStoreError(self.code(localAuthentication: code), status: code, reason: "LocalAuthentication")
            }
            if domain == cryptoTokenKit {
                return KeyStoreError(self.code(cryptoTokenKit: code), status: code, reason: "CryptoTokenKit")
            }
            return KeyStoreError(.failed, status: code, reason: domain)
        }

        private static let localAuthentication = "com.apple.LocalAuthentication"
        private static let cryptoTokenKit = "CryptoTokenKit"

        private static func code(_ status: OSStatus) -> KeyStoreError.Code {
            switch status {
            // The key was deleted; the biometric context changed.
            case errSecItemNotFound: .notFound
            case errSecAuthFailed: .invalidated
            // The device is locked, not unlocked since boot, without a keychain, or in dark wake.
            case errSecInteractionNotAllowed, errSecNotAvailable, errSecInDarkWake: .unavailable
            case errSecMissingEntitlement: .misconfigured
            case errSecUnimplemented: .unsupported
            default: .failed
            }
        }

        /// A key that was restored to another device exists, but its Secure Enclave cannot use it (`TKError.Code`).
        private static func code(cryptoTokenKit code: Int) -> KeyStoreError.Code {
            switch code {
            // corruptedData, objectNotFound.
            case -3, -6: .invalidated
            // communicationError, canceledByUser, tokenNotFound, authenticationNeeded.
            case -2, -4, -7, -9: .unavailable
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
