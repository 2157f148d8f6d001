internal import AuthContract

/// The consequences of each failure, as data (RFC-AUTH-MOBILE-0001 sections 11 and 12; `docs/protocol.md`, *Errors* and *Retry*).
///
/// Every decision to try again, and every recovery that an error advises, comes from this table.
enum RetryTable {
    /// The SDK's own reaction to a failure, once unless noted otherwise. After that it reports the error.
    enum Remedy: Sendable, Hashable, CaseIterable {
        /// Report the error. If it is the refusal of an app's request, `send` returns that refusal as the answer.
        case none
        /// Report the error. `send` throws it too, and does not return the refusal as the answer.
        case report
        /// Repeat the operation, with the back-off of its ``RetryPolicy``.
        case backOff
        /// Read the record again, with the back-off of ``RetryPolicy/storage``.
        case readAgain
        /// Start the registration again with a new challenge, with the back-off of ``RetryPolicy/registration``.
        case newChallenge
        /// Ask the attestation provider again with the same handle. A registration uses the back-off of
        /// ``RetryPolicy/registration``, and the same challenge while it lives. A rotation makes a new attempt.
        case askProviderAgain
        /// In a registration, ask the attestation provider once more, with a new challenge.
        case attestAgain
        /// Make a new handle for the attestation provider and attest with it.
        case newHandle
        /// Sign again with a new time and a new nonce, if it does no harm that the request may take effect twice.
        case signAgain
        /// Correct the clock offset by the service's time, and sign again.
        case learnClock
        /// Sign one of the SDK's own requests again under the other scheme.
        case signOtherScheme
        /// Sign again with an App Attest assertion.
        case assert
        /// Ask for a challenge and rotate again with evidence.
        case attestRotation
        /// Bind a new App Attest key by a rotation, and sign again with an assertion.
        case rebind
        /// Rotate the key and sign again.
        case rotate
        /// Register again and sign again.
        case register
        /// Finish an interrupted rotation and sign again, or sign again with a key that has replaced the refused one. Otherwise do
        /// as for `confirm`.
        case finishRotation
        /// If the refusal came from an origin other than the auth service's, confirm it by a status request to the auth service.
        case confirm
    }

    /// A failure, the SDK's remedy, and the recovery for the app if the remedy does not help.
    struct Row: Sendable {
        let code: SynheartAuthError.Code
        let remedy: Remedy
        let recovery: SynheartAuthError.Recovery

        init(_ code: SynheartAuthError.Code, _ remedy: Remedy, then recovery: SynheartAuthError.Recovery) {
            self.code = code
            self.remedy = remedy
            self.recovery = recovery
        }

        /// A code of the service that the SDK reports unchanged.
        init(service code: ErrorCode, _ remedy: Remedy, then recovery: SynheartAuthError.Recovery) {
            self.init(.server(code.rawValue), remedy, then: recovery)
        }
    }

    /// The SDK's own codes.
    static let own: [Row] = [
        Row(.networkError, .backOff, then: .retry),
        Row(.challengeExpired, .newChallenge, then: .retry),
        Row(.attestationUnavailable, .none, then: .none),
        Row(.attestationFailed, .none, then: .none),
        Row(.keyInvalidated, .register, then: .register),
        Row(.keystoreError, .none, then: .none),
        Row(.secureEnclaveError, .none, then: .none),
        Row(.signingFailed, .none, then: .none),
        Row(.deviceRevoked, .confirm, then: .reset),
        Row(.clockSkew, .learnClock, then: .retry),
        Row(.rotationFailed, .none, then: .retry),
        Row(.nonceReplay, .signAgain, then: .retry),
        Row(.alreadyRegistered, .none, then: .none),
        Row(.notRegistered, .none, then: .register),
        Row(.notConfigured, .none, then: .configure),
        Row(.registrationInProgress, .none, then: .retry),
        Row(.cryptoError, .none, then: .none),
        Row(.storageError, .none, then: .none),
        Row(.answerTooLarge, .none, then: .none),
        Row(.invalidStateTransition, .none, then: .none),
    ]

    /// The SDK's remedies for the service's codes that it reports unchanged; other codes have none.
    private static let remedies: [ErrorCode: Remedy] = [
        .invalidChallenge: .newChallenge,
        .attestationRequired: .attestRotation,
        .notRegistered: .confirm,
        .invalidSignature: .finishRotation,
        .keyExpired: .rotate,
        .assertionRequired: .assert,
        .unsupportedSigVersion: .signOtherScheme,
        .misdirectedRequest: .report,
    ]

    /// The service's codes that the SDK reports unchanged, with the recovery of the contract's table.
    static let service: [Row] = ErrorCode.allCases.filter { renamed[$0] == nil }.map { code in
        Row(service: code, remedies[code] ?? .none, then: .init(rawValue: code.recovery.rawValue) ?? .none)
    }

    /// The service's codes that the SDK reports under codes of its own. Every 5xx is a network error.
    static let renamed: [ErrorCode: SynheartAuthError.Code] = [
        .challengeExpired: .challengeExpired,
        .invalidAttestation: .attestationFailed,
        .deviceRevoked: .deviceRevoked,
        .clockSkew: .clockSkew,
        .nonceReplay: .nonceReplay,
        .rotationFailed: .rotationFailed,
        .providerUnavailable: .networkError,
        .serviceUnavailable: .networkError,
        .internalError: .networkError,
    ]

    /// Failures that the SDK can tell apart although their code is the same.
    enum Situation: Sendable, Hashable, CaseIterable {
        /// The failures of an attestation provider.
        case attestationUnsupported, attestationRefused, providerUnavailable, providerSilent, handleInvalid
        /// The service refused the evidence, but may have registered the key by an earlier request.
        case knownKeyRefused
        /// The service wants the key's own attestation, but that attestation names a used challenge.
        case keyAttestationSpent
        /// There is no attested key for assertions, or the provider no longer knows it.
        case assertionKeyLost
        /// The service accepts no new App Attest key in place of a lost one.
        case rebindRefused
        /// The key store is locked or busy.
        case keyStoreUnavailable, secureEnclaveUnavailable
        /// The platform reports that a key is gone or unusable, but the SDK does not believe it yet.
        case keySuspected, enclaveKeySuspected, signatureSuspected
        /// App Attest failed in a way that often means an unusable key, but the SDK does not believe it yet.
        case assertionSuspected
        /// The record cannot be read or locked now, seems absent or damaged, or belongs to a newer version or another auth service.
        case recordUnavailable, recordLocked, recordSuspected, recordOfNewerVersion, recordOfAnotherService
        /// The disk is full. Nothing has changed.
        case diskFull
        /// The device's clock differs from the service's by more than the SDK may correct by itself.
        case clockTooFarOff
        /// The service accepts no key of this device: it names a key that the device does not have, or refuses every key that
        /// the device still has.
        case noKeyAccepted
        /// The service refuses the rotation because the key is too old.
        case keyTooOldToRotate
        /// The caller no longer waits.
        case deadlinePassed, cancelled
        /// The identity was reset while the operation waited.
        case resetMeanwhile
        /// The service refused a request as a replay, because it has already accepted a copy. The SDK does not sign it again,
        /// because a second effect may do harm.
        case writeReplayed
        /// `configure` was called again with other values.
        case configuredOtherwise
    }

    static let situations: [Situation: Row] = [
        .attestationUnsupported: Row(.attestationUnavailable, .none, then: .none),
        .attestationRefused: Row(.attestationFailed, .attestAgain, then: .none),
        .providerUnavailable: Row(.attestationFailed, .askProviderAgain, then: .retry),
        .providerSilent: Row(.attestationFailed, .none, then: .retry),
        .handleInvalid: Row(.attestationFailed, .newHandle, then: .none),
        .knownKeyRefused: Row(.attestationFailed, .none, then: .reset),
        .keyAttestationSpent: Row(.attestationFailed, .attestAgain, then: .none),
        .assertionKeyLost: Row(.attestationFailed, .rebind, then: .reset),
        .rebindRefused: Row(.attestationFailed, .none, then: .reset),
        .keyStoreUnavailable: Row(.keystoreError, .none, then: .retry),
        .secureEnclaveUnavailable: Row(.secureEnclaveError, .none, then: .retry),
        .keySuspected: Row(.keystoreError, .none, then: .retry),
        .enclaveKeySuspected: Row(.secureEnclaveError, .none, then: .retry),
        .signatureSuspected: Row(.signingFailed, .none, then: .retry),
        .assertionSuspected: Row(.attestationFailed, .none, then: .retry),
        .recordUnavailable: Row(.storageError, .readAgain, then: .retry),
        .recordLocked: Row(.storageError, .none, then: .retry),
        .recordSuspected: Row(.storageError, .none, then: .retry),
        .diskFull: Row(.storageError, .none, then: .retry),
        .recordOfNewerVersion: Row(.storageError, .none, then: .none),
        .recordOfAnotherService: Row(.storageError, .none, then: .reset),
        .clockTooFarOff: Row(.clockSkew, .none, then: .correctClock),
        .noKeyAccepted: Row(.rotationFailed, .none, then: .reset),
        .keyTooOldToRotate: Row(service: .keyExpired, .none, then: .reset),
        .deadlinePassed: Row(.networkError, .none, then: .retry),
        .cancelled: Row(.cancelled, .none, then: .retry),
        .configuredOtherwise: Row(.notConfigured, .none, then: .none),
        .writeReplayed: Row(.nonceReplay, .none, then: .none),
        .resetMeanwhile: Row(.networkError, .none, then: .retry),
    ]

    /// The SDK waits no longer than this for a `Retry-After`.
    static let longestRetryAfter = Duration.seconds(300)

    /// The code under which the SDK reports a service's code.
    static func reported(_ code: ErrorCode) -> SynheartAuthError.Code { renamed[code] ?? .server(code.rawValue) }

    /// The row of a code. An unknown code is reported, with recovery `none`.
    static func row(of code: SynheartAuthError.Code) -> Row { byCode[code] ?? Row(code, .none, then: .none) }

    /// The row of a situation. One without a row is reported as `CRYPTO_ERROR`, with recovery `none`.
    static func row(of situation: Situation) -> Row { situations[situation] ?? Row(.cryptoError, .none, then: .none) }

    private static let byCode = Dictionary(uniqueKeysWithValues: (own + service).map { ($0.code, $0) })
}

extension RetryPolicy {
    /// Registration. Each attempt has its own challenge. The pauses for an unavailable attestation provider follow this policy too.
    static let registration = RetryPolicy(
        base: .seconds(1), jitter: .milliseconds(500), maximum: .seconds(30), attempts: 5)
    /// Rotation: three attempts now, more at the next launch.
    static let rotation = RetryPolicy(base: .seconds(60), jitter: .zero, maximum: .seconds(3600), attempts: 3)
    /// Reading a record that is unavailable.
    static let storage = RetryPolicy(base: .milliseconds(100), jitter: .zero, maximum: .seconds(2), attempts: 5)
}
