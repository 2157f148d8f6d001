public import StrictJSON

/// The state of a device on the service.
public enum DeviceStatus: String, Sendable, Hashable, CaseIterable {
    case pending, registered, rejected, revoked, deregistered
}

/// What the service knows of the device that asks: `GET /auth/v1/device/status`.
public struct StatusResponse: WireBody, Hashable {
    public let deviceID: DeviceID
    public let status: DeviceStatus
    public let platform: Platform
    public let registeredAt: UnixTime
    public let keyRotatedAt: UnixTime?
    public let keyAgeSeconds: Int64
    /// Names the key that counts, whichever signed the request (RFC 7638).
    public let keyThumbprint: String
    public let mustRotate: Bool
    public let assurance: Assurance
    public let serverTimestamp: UnixTime

    /// A response of its parts.
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
