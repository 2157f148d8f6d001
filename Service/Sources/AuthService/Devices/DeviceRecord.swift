public import AuthContract

/// A device as the service stores it.
public struct DeviceRecord: Sendable, Hashable {
    /// The app that the device registered for.
    public let appID: AppID
    /// The id that the service issued.
    public let deviceID: DeviceID
    /// The platform of the device. It never changes.
    public let platform: Platform
    /// The stored status. `status(under:)` is the effective one.
    public var status: DeviceStatus
    /// The current key.
    public var key: DevicePublicKey
    /// The key before the last rotation; nil: the device has not rotated. Until `previousKeyUntil`, the previous key may
    /// sign what the access table allows.
    public var previousKey: DevicePublicKey?
    /// The end of the overlap; nil: the previous key is not accepted.
    public var previousKeyUntil: UnixTime?
    /// The device's proven assurance.
    public var assurance: Assurance
    /// The version of the app in the newest accepted evidence that names one, 1 to 64 printable ASCII characters:
    /// `CFBundleVersion`, or Android's version code. Nil: no evidence named one. No decision depends on it.
    public var appVersion: String?
    /// App Attest data for assertions and the receipt refresh; nil: no attestation of App Attest verified.
    public var appAttest: AppAttestKeyState?
    /// When the device registered, on the service's clock.
    public let registeredAt: UnixTime
    /// When a rotation made the current key current; nil before the first rotation.
    public var keyRotatedAt: UnixTime?
    /// When the device was last seen. Coarse, because the times are written in batches. Nil: no time was written yet.
    public var lastSeen: UnixTime?
    /// The device's own scheme floor: the highest scheme under which a request verified, unless an operator lowered it.
    public var highestScheme: SignatureScheme
    /// An operator's demand to rotate the key.
    public var mustRotate: RotationDemand?
    /// Whether the device was admitted only because the app was in mode `observe`.
    public var admittedUnderObservation: Bool
    /// The id that the client chose. It is displayed, but never trusted.
    public let localID: String?
    /// The number of decisions (`DeviceChange`) that were saved. A new decision is saved only if the stored version is
    /// still that of the record from which the decision was made.
    public var version: Int64

    /// Memberwise initializer.
    public init(
        appID: AppID, deviceID: DeviceID, platform: Platform, status: DeviceStatus, key: DevicePublicKey,
        previousKey: DevicePublicKey? = nil, previousKeyUntil: UnixTime? = nil, assurance: Assurance,
        appVersion: String? = nil, appAttest: AppAttestKeyState? = nil, registeredAt: UnixTime,
        keyRotatedAt: UnixTime? = nil,
        lastSeen: UnixTime? = nil, highestScheme: SignatureScheme = .one, mustRotate: RotationDemand? = nil,
        admittedUnderObservation: Bool = false, localID: String? = nil, version: Int64 = 0
    ) {
        self.appID = appID
        self.deviceID = deviceID
        self.platform = platform
        self.status = status
        self.key = key
        self.previousKey = previousKey
        self.previousKeyUntil = previousKeyUntil
        self.assurance = assurance
        self.appVersion = appVersion
        self.appAttest = appAttest
        self.registeredAt = registeredAt
        self.keyRotatedAt = keyRotatedAt
        self.lastSeen = lastSeen
        self.highestScheme = highestScheme
        self.mustRotate = mustRotate
        self.admittedUnderObservation = admittedUnderObservation
        self.localID = localID
        self.version = version
    }

    /// The effective status. A device that was admitted under observation is pending as soon as the app's mode is
    /// `enforce`. Its stored status may still be `registered`, because a registration may run while the mode is switched.
    public func status(under mode: AppRecord.Mode) -> DeviceStatus {
        status == .registered && admittedUnderObservation && mode == .enforce ? .pending : status
    }

    /// Whether the latest risk metric is above the app's `flag_risk_metric_above`. A flag is a reason to investigate, never to
    /// refuse.
    package func isRiskFlagged(by app: AppRecord?) -> Bool {
        guard let metric = appAttest?.riskMetric, let threshold = app?.ios?.flagRiskMetricAbove else { return false }
        return metric > threshold
    }

    /// The demand that the device receives. It combines the operator's demand and the policy's demands after compromises: the
    /// earliest time and the strongest reason.
    public func rotationDemand(under keys: KeyPolicy, at now: UnixTime) -> RotationDemand? {
        let demands = rotationDemands(under: keys, at: now)
        guard let by = demands.map(\.by).min() else { return nil }
        let isCompromised = demands.contains { $0.reason == .compromise }
        return RotationDemand(by: by, reason: isCompromised ? .compromise : .scheduled)
    }

    /// Whether the key may be compromised. The reason that the device itself gives for a rotation is not considered.
    func isCompromised(under keys: KeyPolicy, at now: UnixTime) -> Bool {
        rotationDemands(under: keys, at: now).contains { $0.reason == .compromise }
    }

    /// Every demand to rotate this key.
    func rotationDemands(under keys: KeyPolicy, at now: UnixTime) -> [RotationDemand] {
        var demands = mustRotate.map { [$0] } ?? []
        // A demand does not apply before `keysBefore`. Otherwise every new key would have to rotate at once.
        for compromise in keys.compromises where compromise.keysBefore <= now && keySince < compromise.keysBefore {
            demands.append(RotationDemand(by: compromise.rotateBy, reason: .compromise))
        }
        return demands
    }

    /// The start of the key's age: the last rotation, or the registration.
    public var keySince: UnixTime { keyRotatedAt ?? registeredAt }
}

/// The stored data of a verified App Attest attestation.
public struct AppAttestKeyState: Sendable, Hashable {
    /// SHA-256 of the attested key, 32 bytes; unique within the app.
    public let keyID: [UInt8]
    /// The attested key (not the request key), uncompressed X9.63, 65 bytes.
    public let publicKey: [UInt8]
    /// The App ID that the attestation was for.
    public let appID: String
    /// `production` or `development`.
    public let environment: String
    /// Whether the attestation carried an extension map. If it did not, the maps of the key's assertions are not used.
    public let attestedExtensions: Bool
    /// The counter of the last assertion accepted; 0 after the attestation.
    public var counter: UInt32
    /// The receipt from the attestation, or the newest one that Apple sent in exchange.
    public var receipt: [UInt8]?
    /// The result of checking the receipt: `verified`, or the code of the check that refused it.
    public var receiptOutcome: String?
    /// Apple's risk metric, once a receipt named one.
    public var riskMetric: Int?
    /// When the receipt is exchanged for a newer one.
    public var refresh: ReceiptRefresh

    /// Memberwise initializer.
    public init(
        keyID: [UInt8], publicKey: [UInt8], appID: String, environment: String, attestedExtensions: Bool = false,
        counter: UInt32 = 0, receipt: [UInt8]? = nil, receiptOutcome: String? = nil, riskMetric: Int? = nil,
        refresh: ReceiptRefresh = ReceiptRefresh()
    ) {
        self.keyID = keyID
        self.publicKey = publicKey
        self.appID = appID
        self.environment = environment
        self.attestedExtensions = attestedExtensions
        self.counter = counter
        self.receipt = receipt
        self.receiptOutcome = receiptOutcome
        self.riskMetric = riskMetric
        self.refresh = refresh
    }
}
