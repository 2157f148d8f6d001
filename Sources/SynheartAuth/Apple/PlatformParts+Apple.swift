#if canImport(Security) && canImport(CryptoKit) && canImport(DeviceCheck)
    /// The defaults on Apple's systems: the Keychain, the Secure Enclave, App Attest.
    enum PlatformParts {
        static var storage: any RecordStorage { KeychainStorage() }
        static var keyStore: any KeyStore { SecureEnclaveKeyStore() }
        static var attestation: any AttestationProvider { AppAttestProvider() }
        static var logger: any AuthLogger { SystemLogger() }
        static var runtimeKeyStore: any KeyStore { RuntimeKeyStore() }
        static var runtimeSecrets: any RuntimeSecrets { KeychainSecrets() }

        static var runningTime: any RunningTime {
            #if os(macOS)
                UnlimitedTime()
            #else
                ExpiringActivity.shared
            #endif
        }
    }
#endif
