public import StrictJSON

/// The state of a device on the service.
public enum DeviceStatus: String, Sendable, Hashable, CaseIterable {
    /// The device waits for approval, or for a provider. It may only ask for its status and deregister.
    case pending
    /// The device may sign requests.
    case registered
    /// Policy or an operator refused the device. It may only ask for its status and deregister.
    case rejected
    /// An operator revoked the device permanently. Every request is refused with `deviceRevoked`.
    case revoked
    /// The device deregistered itself. Every request is refused with `notRegistered`. A tombstone of the device remains.
    case deregistered
}

/// The service's view of the device that signed the request: `GET /auth/v1/device/status`.
public struct StatusResponse: WireBody, Hashable {
    /// The device that signed the request.
    public let deviceID: DeviceID
    /// The state of the device.
    public let status: DeviceStatus
    /// The platform that the device registered with.
    public let platform: Platform
    /// The time when the device registered, on the service's clock.
    public let registeredAt: UnixTime
    /// The time when the current key became current; nil before the first rotation.
    public let keyRotatedAt: UnixTime?
    /// The age of the current key in seconds, from `keyRotatedAt` or else from `registeredAt`.
    public let keyAgeSeconds: Int64
    /// The RFC 7638 thumbprint of the current key, even if the previous key signed the request.
    public let keyThumbprint: String
    /// Whether the key must be rotated: an operator or the app's policy demands it, or the key is too old and in its grace period.
    public let mustRotate: Bool
    /// The device's proven assurance.
    public let assurance: Assurance
    /// The service's clock. A client corrects its own clock with it.
    public let serverTimestamp: UnixTime

    /// Memberwise initializer.
    public init(
        deviceID: DeviceID, status: DeviceStatus, platform: Platform, registeredAt: UnixTime, keyRotatedAt: UnixTime?,
        keyAgeSeconds: Int64, keyThumbprint: String, mustRotate: Bool, assurance: Assurance, serverTimestamp: UnixTime
    ) {
        self.deviceID = deviceID
        self.status = status
        self.platform = platform
        self.registeredAt = registeredAt
        self.keyRotatedAt = keyRotatedAt
        self.keyAgeSeconds = keyAgeSeconds
        self.keyThumbprint = keyThumbprint
        self.mustRotate = mustRotate
        self.assurance = assurance
        self.serverTimestamp = serverTimestamp
    }

    public init(_ fields: JSONFields) throws {
        deviceID = try fields.deviceID()
        status = try fields.choice("status")
        platform = try fields.choice("platform")
        registeredAt = try fields.unixTime("registered_at")
        keyRotatedAt = try fields.optionalInteger("key_rotated_at").map { UnixTime($0) }
        keyAgeSeconds = try fields.integer("key_age_seconds")
        keyThumbprint = try fields.string("key_thumbprint")
        mustRotate = try fields.bool("must_rotate")
        assurance = try Assurance(fields.object("assurance"))
        serverTimestamp = try fields.unixTime("server_timestamp")
    }

    public var json: JSONObject {
        JSONObject(members: [
            .init("device_id", .string(deviceID.text)), .init("status", .string(status.rawValue)),
            .init("platform", .string(platform.rawValue)), .init("registered_at", .integer(registeredAt.seconds)),
            .init("key_rotated_at", keyRotatedAt.map { .integer($0.seconds) } ?? .null),
            .init("key_age_seconds", .integer(keyAgeSeconds)), .init("key_thumbprint", .string(keyThumbprint)),
            .init("must_rotate", .bool(mustRotate)), .init("assurance", .object(assurance.json)),
            .init("server_timestamp", .integer(serverTimestamp.seconds)),
        ])
    }
}
