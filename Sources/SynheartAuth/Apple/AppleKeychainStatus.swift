#if canImport(Security)
    internal import Foundation
    internal import Security

    /// Maps an answer of Security.framework, CryptoTokenKit or LocalAuthentication to its meaning for a key or a record
    /// (specification, *Key invalidation*).
    enum AppleKeychainStatus {
        static func keyStoreError(_ status: OSStatus, accessGroup: String? = nil) -> KeyStoreError {
            KeyStoreError(code(status), status: Int(status), reason: text(status, accessGroup))
        }

        static func storageError(_ status: OSStatus, accessGroup: String?) -> StorageError {
            StorageError(
                text(status, accessGroup), status: Int(status), isMisconfigured: status == errSecMissingEntitlement)
        }

        static func text(_ status: OSStatus, _ accessGroup: String?) -> String {
            guard status == errSecMissingEntitlement else {
                return SecCopyErrorMessageString(status, nil) as String? ?? "Keychain"
            }
            return accessGroup.map { "the app has no entitlement for the Keychain access group \($0)" }
                ?? "the app has no entitlement for the Keychain"
        }

        static func keyStoreError(_ error: CFError) -> KeyStoreError {
            keyStoreError(
                domain: CFErrorGetDomain(error) as String, code: Int(CFErrorGetCode(error)),
                userInfo: CFErrorCopyUserInfo(error) as? [String: Any] ?? [:])
        }

        static func keyStoreError(_ error: any Error) -> KeyStoreError {
            let error = error as NSError
            return keyStoreError(domain: error.domain, code: error.code, userInfo: error.userInfo)
        }

        static func keyStoreError(domain: String, code: Int, userInfo: [String: Any] = [:]) -> KeyStoreError {
            if domain == NSOSStatusErrorDomain, let status = OSStatus(exactly: code) { return keyStoreError(status) }
            let enclave = enclaveStatus(userInfo)
            let reason = enclave.map { "\(domain), \(enclaveKey) \($0)" } ?? domain
            let meaning: KeyStoreError.Code =
                switch domain {
                case "com.apple.LocalAuthentication": self.code(localAuthentication: code)
                case "CryptoTokenKit": self.code(cryptoTokenKit: code, enclave)
                default: .failed
                }
            return KeyStoreError(meaning, status: code, reason: reason)
        }

        private static func code(_ status: OSStatus) -> KeyStoreError.Code {
            switch status {
            case errSecItemNotFound: .notFound
            // Temporary failures: the device is locked, was not unlocked since boot, has no keychain, or is in dark wake; another
            // call made the item first; the disk is full or fails; memory is short.
            case errSecInteractionNotAllowed, errSecNotAvailable, errSecInDarkWake, errSecDuplicateItem, errSecDiskFull,
                errSecIO, errSecAllocate:
                .unavailable
            case errSecMissingEntitlement: .misconfigured
            case errSecUnimplemented: .unsupported
            // Includes errSecAuthFailed, which should not occur without a biometric access control.
            default: .failed
            }
        }

        /// Maps a `TKError.Code`. -3 is the Secure Enclave's general failure, which also occurs on healthy devices. The Secure
        /// Enclave's own status is more precise.
        private static func code(cryptoTokenKit code: Int, _ enclave: Int?) -> KeyStoreError.Code {
            switch (code, enclave) {
            case (-3, policyInvalid): .invalidated
            case (-3, notPermitted): .unavailable
            // communicationError, canceledByUser, tokenNotFound, authenticationNeeded.
            case (-2, _), (-4, _), (-7, _), (-9, _): .unavailable
            // objectNotFound.
            case (-6, _): .notFound
            default: .failed
            }
        }

        /// Maps an `LAError.Code`. Keys have no user presence flag, so no such error is expected.
        private static func code(localAuthentication code: Int) -> KeyStoreError.Code {
            switch code {
            // systemCancel, biometryLockout, appCancel, notInteractive.
            case -4, -8, -9, -1004: .unavailable
            default: .failed
            }
        }

        private static let enclaveKey = "AKSError"
        /// The policy of the key is invalid: the key never works again.
        private static let policyInvalid = -536_362_999
        /// The device is locked.
        private static let notPermitted = -536_870_174

        /// The Secure Enclave's own status, from the error or an underlying one; nil if neither has it.
        private static func enclaveStatus(_ userInfo: [String: Any], depth: Int = 4) -> Int? {
            if let status = userInfo[enclaveKey] { return (status as? NSNumber)?.intValue ?? status as? Int }
            guard depth > 0, let below = userInfo[NSUnderlyingErrorKey] as? NSError else { return nil }
            return below.domain == enclaveKey ? below.code : enclaveStatus(below.userInfo, depth: depth - 1)
        }
    }
#endif
