public import StrictJSON

/// A JSON body of the contract: snake_case names. Unknown members are ignored, wrong types are refused.
public protocol WireBody: Sendable {
    /// Reads the members.
    init(_ fields: JSONFields) throws

    /// The members to send. An absent value is left out, or is `null` where the contract demands the member.
    var json: JSONObject { get }
}

extension WireBody {
    /// Parses the body strictly.
    public init(parsing bytes: some Collection<UInt8>, limits: JSONValue.Limits = JSONValue.Limits()) throws {
        try self.init(JSONFields(JSONValue(parsing: bytes, limits: limits)))
    }

    /// The body as UTF-8.
    public var bytes: [UInt8] { JSONValue.object(json).bytes }
}

extension JSONObject {
    /// An object of the members that have a value. The names must differ.
    static func of(_ members: (String, JSONValue?)...) -> JSONObject {
        var object = JSONObject(reserving: members.count)
        for case (let name, let value?) in members { object.append(Member(name, value)) }
        return object
    }
}

extension JSONFields {
    func appID(_ name: String = "app_id") throws(JSONError) -> AppID { try parsed(name) { try AppID($0) } }

    func deviceID(_ name: String = "device_id") throws(JSONError) -> DeviceID { try parsed(name) { try DeviceID($0) } }

    func base64(_ name: String) throws(JSONError) -> [UInt8] {
        guard let bytes = try optionalBase64(name) else { throw JSONError(.missing, path: pathOf(name)) }
        return bytes
    }

    func optionalBase64(_ name: String) throws(JSONError) -> [UInt8]? {
        guard let text = try optionalString(name) else { return nil }
        guard let bytes = Base64.standard.decode(text) else { throw JSONError(.wrongType, path: pathOf(name)) }
        return bytes
    }

    func unixTime(_ name: String) throws(JSONError) -> UnixTime { UnixTime(try integer(name)) }
}
