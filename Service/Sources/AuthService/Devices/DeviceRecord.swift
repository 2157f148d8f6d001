public import AuthContract

/// A device as the service keeps it.
public struct DeviceRecord: Sendable, Hashable {
    public let appID: AppID
    public let deviceID: DeviceID
    public let platform: Platform
    public var status: DeviceStatus
    /// The key that counts.
    public var key: DevicePublicKey
    /// The key before, and until when it still verifies what the table of the contract allows.
    public var previousKey: DevicePublicKey?
    public var previousKeyUntil: UnixTime?
    public var assurance: Assurance
    /// What is kept of App Attest for later: assertions, receipt refresh.
    public var appAttest: AppAttestEvidence?
    public let registeredAt: UnixTime
    public var keyRotatedAt: UnixTime?
    /// Coarse: written in batches.
    public var lastSeen: UnixTime?
    /// The highest scheme under which a request verified: the device's floor.
    public var highestScheme: SignatureScheme
    /// An operator's demand to rotate the key.
    public var mustRotate: RotationDemand?
    /// Admitted only because the app was in mode `observe`.
    public var admittedUnderObservation: Bool
    /// The client's own id: shown, never trusted.
    public let localID: String?

    /// A record of its parts.
    public init(
        appID: AppID, deviceID: DeviceID, platform: Platform, status: DeviceStatus, key: DevicePublicKey,
        previousKey: DevicePublicKey? = nil, previousKeyUntil: UnixTime? = nil, assurance: Assurance,
        appAttest: AppAttestEvidence? = nil, registeredAt: UnixTime, keyRotatedAt: UnixTime? = nil,
        lastSeen: UnixTime? = nil, highestScheme: SignatureScheme = .one, mustRotate: RotationDemand? = nil,
        admittedUnderObservation: Bool = false, localID: String? = nil
    ) {
        self.appID = appID
        self.deviceID = deviceID
        self.platform = platform
        self.status = status
        self.key = key
        self.previousKey = previousKey
        self.previousKeyUntil = previousKeyUntil
        self.assurance = assurance
        self.appAttest = appAttest
        self.registeredAt = registeredAt
        self.keyRotatedAt = keyRotatedAt
        self.lastSeen = lastSeen
        self.highestScheme = highestScheme
        self.mustRotate = mustRotate
        self.admittedUnderObservation = admittedUnderObservation
        self.localID = localID
    }

    /// The status that counts. Who was admitted only under observation waits as soon as the app enforces, even where the row
    /// has not been changed yet: a registration may have been under way while the app was switched.
    public func status(under mode: AppRecord.Mode) -> DeviceStatus {
        status == .registered && admittedUnderObservation && mode == .enforce ? .pending : status
    }

    /// Whether the latest risk metric is above what the app's policy flags: a reason to look, never to refuse.
    public func isRiskFlagged(by app: AppRecord?) -> Bool {
        guard let metric = appAttest?.riskMetric, let threshold = app?.ios?.flagRiskMetricAbove else { return false }
        return metric > threshold
    }

    /// What the device is told about rotating: of an operator's demand and the policy's after a compromise, the sooner time
    /// and the stronger reason.
    public func rotationDemand(under keys: KeyPolicy, at now: UnixTime) -> RotationDemand? {
        let demands = rotationDemands(under: keys, at: now)
        guard let by = demands.map(\.by).min() else { return nil }
        let isCompromised = demands.contains { $0.reason == .compromise }
        return RotationDemand(by: by, reason: isCompromised ? .compromise : .scheduled)
    }

    /// Whether the key may be in other hands: it must rotate for that reason, whatever the device says.
    func isCompromised(under keys: KeyPolicy, at now: UnixTime) -> Bool {
        rotationDemands(under: keys, at: now).contains { $0.reason == .compromise }
    }

    /// Every demand to rotate this key.
    func rotationDemands(under keys: KeyPolicy, at now: UnixTime) -> [RotationDemand] {
        var demands = mustRotate.map { [$0] } ?? []
        // While `keysBefore` is still to come, it would demand a rotation of every key that was made to obey it.
        if let compromise = keys.compromise, compromise.keysBefore <= now, keySince < compromise.keysBefore {
            demands.append(RotationDemand(by: compromise.rotateBy, reason: .compromise))
        }
        return demands
    }

    /// Key age counts from the last rotation, else from the registration.
    public var keySince: UnixTime { keyRotatedAt ?? registeredAt }
}

/// What is kept of a verified App Attest attestation.
public struct AppAttestEvidence: Sendable, Hashable {
    /// SHA-256 of the attested key, 32 bytes; unique within the app.
    public let keyID: [UInt8]
    /// The attested key (not the request key), uncompressed X9.63, 65 bytes.
    public let publicKey: [UInt8]
    /// The App ID that the attestation was for.
    public let appID: String
    /// `production` or `development`.
    public let environment: String
    /// Whether the attestation carried an extension map. Only then do the maps of the key's assertions count.
    public let attestedExtensions: Bool
    /// The counter of the last assertion accepted; 0 after the attestation.
    public var counter: UInt32
    /// The receipt as Apple sent it.
    public var receipt: [UInt8]?
    /// `verified`, or the code of the check that refused it.
    public var receiptOutcome: String?
    /// Apple's risk metric, once a receipt named one.
    public var riskMetric: Int?
    /// When the receipt is exchanged for a newer one.
    public var refresh: ReceiptRefresh

    /// Evidence of its parts.
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
