internal import AuthContract
internal import AuthService
internal import StrictJSON

/// The description of one operation.
struct OpenAPIOperation: Sendable {
    let id: String
    let method: String
    let path: String
    let tag: String
    let summary: String
    let description: String
    /// The name of the body's schema; nil: no body.
    var requestSchema: String?
    /// Whether the body is optional.
    var requestIsOptional = false
    var successStatus = 200
    var successSchema: String?
    /// The media type of the success body, if it is text and not JSON. Then `successSchema` is not used.
    var successMediaType: String?
    var security: Security = .none
    var queryNames: [String] = []
    /// The largest `limit` of the query.
    var mostElements: Int64 = 1000
    /// The errors of the operation, in addition to those of every operation.
    var errors: Set<ErrorCode> = []

    /// How the caller authenticates.
    enum Security: String, Sendable {
        case none, deviceSignature, serviceCredential, forwardingCredential, adminCredential
    }

    private static let everywhere: Set<ErrorCode> = [.invalidRequest, .internalError]

    /// The Operation Object of OpenAPI.
    var json: JSONValue {
        var object = JSONObject()
        object["operationId"] = .string(id)
        object["tags"] = [.string(tag)]
        object["summary"] = .string(summary)
        object["description"] = .string(description)
        object["responses"] = responses
        let parameters = pathParameters + queryParameters + headerParameters
        if !parameters.isEmpty { object["parameters"] = .array(parameters) }
        if let requestSchema {
            object["requestBody"] = [
                "required": .bool(!requestIsOptional), "content": ["application/json": Self.schema(requestSchema)],
            ]
        }
        object["security"] = security == .none ? [] : [.members((security.rawValue, []))]
        return .object(object)
    }

    private var responses: JSONValue {
        var success = JSONObject()
        success["description"] = "Done"
        success["headers"] = successHeaders
        if let successMediaType {
            success["content"] = .members(
                (successMediaType, ["schema": ["type": "string"], "example": OpenAPIExamples.metrics]))
        } else if let successSchema {
            success["content"] = ["application/json": Self.schema(successSchema)]
        }
        var all = JSONObject([(String(successStatus), JSONValue.object(success))])
        let route = Route(rawValue: path)
        let byStatus = Dictionary(grouping: errors.union(Self.everywhere)) {
            route?.httpStatus(of: $0) ?? $0.httpStatus
        }
        for (status, codes) in byStatus.sorted(by: { $0.key < $1.key }) {
            all[String(status)] = [
                "description": .string(
                    codes.map { "`\($0.rawValue)`: \($0.message)" }.sorted().joined(separator: "\n")),
                "headers": headers(refusing: Set(codes)),
                "content": [
                    "application/json": Self.schema("Error"), "application/problem+json": Self.schema("Problem"),
                ],
            ]
        }
        return .object(all)
    }

    private static func schema(_ name: String) -> JSONValue {
        var content = JSONObject([("schema", ["$ref": .string("#/components/schemas/\(name)")] as JSONValue)])
        if let example = OpenAPIExamples.bySchema[name] { content["example"] = example }
        return .object(content)
    }

    private var pathParameters: [JSONValue] {
        path.split(separator: "/").filter { $0.hasPrefix("{") }.map { part in
            let name = String(part.dropFirst().dropLast())
            let schema: JSONValue =
                switch name {
                case "app_id": ["$ref": "#/components/schemas/AppID"]
                case "device_id": ["$ref": "#/components/schemas/DeviceID"]
                default: ["type": "string"]
                }
            return Self.parameter(name, in: "path", isRequired: true, schema)
        }
    }

    private var queryParameters: [JSONValue] {
        queryNames.map { name in
            Self.parameter(name, in: "query", isRequired: false, querySchema(name))
        }
    }

    static func parameter(
        _ name: String, in place: String, isRequired: Bool, _ schema: JSONValue, _ description: String? = nil
    ) -> JSONValue {
        var parameter = JSONObject([
            ("name", .string(name)), ("in", .string(place)), ("required", .bool(isRequired)), ("schema", schema),
        ])
        if let description { parameter["description"] = .string(description) }
        if let example = OpenAPIExamples.parameter(name) { parameter["example"] = example }
        return .object(parameter)
    }

    private func querySchema(_ name: String) -> JSONValue {
        switch name {
        case "app_id": ["$ref": "#/components/schemas/AppID"]
        case "device_id": ["$ref": "#/components/schemas/DeviceID"]
        case "device_hash": ["type": "string", "pattern": "^[0-9a-f]{16}$"]
        case "status": ["$ref": "#/components/schemas/DeviceStatus"]
        case "platform": ["$ref": "#/components/schemas/Platform"]
        case "limit": ["type": "integer", "minimum": 1, "maximum": .integer(mostElements)]
        case "before": ["type": "integer", "minimum": 1]
        case "after": ["type": "integer", "minimum": 0]
        case "wait_seconds": ["type": "integer", "minimum": 0, "maximum": .integer(AuditFollowers.longestWait)]
        case "head": ["$ref": "#/components/schemas/AuditHeadText"]
        case "kind": ["$ref": "#/components/schemas/VerdictKind"]
        case "scheme": ["type": "integer", "enum": [1, 2]]
        case "step": ["type": "integer", "minimum": 60, "maximum": 86400]
        case "by": ["type": "string", "pattern": "^[a-z_]+(,[a-z_]+)*$"]
        case "code" where id == AdminRoute.queryAudit.rawValue:
            ["type": "string", "pattern": "^[a-z_]+\\.[a-z_]+(,[a-z_]+\\.[a-z_]+)*$"]
        case "order": ["type": "string", "enum": .array(DeviceQuery.Order.allCases.map { .string($0.rawValue) })]
        case "registered_from", "registered_before", "since", "until":
            ["anyOf": [["$ref": "#/components/schemas/UnixTime"], ["$ref": "#/components/schemas/Time"]]]
        default: ["type": "string"]
        }
    }
}

extension OpenAPIOperation {
    /// One route of the public API.
    init(_ route: Route) {
        let signed: Set<ErrorCode> = [
            .unknownApp, .misdirectedRequest, .notRegistered, .invalidSignature, .clockSkew, .nonceReplay,
            .deviceRevoked,
            .unsupportedSigVersion, .assertionRequired, .invalidAssertion, .devModeNotAllowed, .rateLimited,
            .serviceUnavailable, .payloadTooLarge,
        ]
        let posted: Set<ErrorCode> = [.payloadTooLarge, .unsupportedMediaType]
        func make(_ id: String, _ summary: String) -> OpenAPIOperation {
            OpenAPIOperation(
                id: id, method: route.method, path: route.rawValue, tag: "Device API", summary: summary,
                description: route.explanation)
        }
        var operation: OpenAPIOperation
        switch route {
        case .challenge:
            operation = make("challenge", "Ask for a challenge: good once, for 90 s")
            (operation.requestSchema, operation.successSchema) = ("ChallengeRequest", "ChallengeResponse")
            operation.errors = posted.union([.unknownApp, .devModeNotAllowed, .rateLimited, .serviceUnavailable])
        case .register:
            operation = make("register", "Register a key, with the proof of the platform's maker")
            (operation.requestSchema, operation.successSchema) = ("RegisterRequest", "RegisterResponse")
            operation.errors = posted.union([
                .unknownApp, .invalidChallenge, .challengeExpired, .invalidAttestation, .providerUnavailable,
                .devModeNotAllowed, .deviceRevoked, .rateLimited, .serviceUnavailable,
            ])
        case .status:
            operation = make("status", "What the service knows of the device that asks")
            operation.successSchema = "StatusResponse"
            operation.security = .deviceSignature
            operation.errors = signed
        case .rotateKey:
            operation = make("rotateKey", "Replace the key, signed by the current one")
            (operation.requestSchema, operation.successSchema) = ("RotateKeyRequest", "RotateKeyResponse")
            operation.security = .deviceSignature
            operation.errors = signed.union(posted).union([
                .rotationFailed, .devicePending, .keyExpired, .invalidChallenge, .challengeExpired,
                .invalidAttestation, .attestationRequired,
            ])
        case .device:
            operation = make("deregister", "End the device's own registration")
            operation.successStatus = 204
            operation.security = .deviceSignature
            operation.errors = signed
        case .token:
            operation = make("token", "Ask for a token that any backend can check offline")
            (operation.requestSchema, operation.successSchema) = ("TokenRequest", "TokenResponse")
            operation.security = .deviceSignature
            operation.errors = signed.union(posted).union([.devicePending, .keyExpired])
        case .verify:
            operation = make("verify", "Verify a request that another service received")
            (operation.requestSchema, operation.successSchema) = ("VerifyRequest", "VerifyResponse")
            operation.security = .serviceCredential
            operation.errors = signed.union(posted).union([
                .devicePending, .keyExpired, .unauthorized, .forbidden,
            ])
        case .forward:
            operation = make("forward", "Verify a request that a gateway forwards")
            operation.security = .forwardingCredential
            operation.errors = signed.union([.devicePending, .keyExpired, .unauthorized, .forbidden])
        case .keySet, .wellKnownKeySet:
            operation = make(
                route == .keySet ? "keySet" : "wellKnownKeySet", "The keys that sign device tokens")
            operation.successSchema = "KeySet"
            operation.errors = [.serviceUnavailable]
        case .openIDConfiguration, .authorizationServer:
            operation = make(
                route == .openIDConfiguration ? "openIDConfiguration" : "authorizationServer",
                "Where the keys of this issuer are")
            operation.successSchema = "IssuerMetadata"
            operation.errors = [.notFound]
        }
        self = operation
    }

    /// One operation of the admin API.
    init(_ route: AdminRoute) {
        self.init(
            id: route.rawValue, method: route.method, path: route.template, tag: "Administration",
            summary: "\(route.summary) (\(route.role.rawValue))",
            description: "\(route.explanation) Needs role \(route.role.rawValue)."
                + (route.formerTemplate.map { " Deprecated: the path `\($0)`, which answers in 1.x too." } ?? ""))
        security = .adminCredential
        queryNames = route.queryNames
        errors = [.unauthorized, .forbidden, .notFound, .rateLimited, .serviceUnavailable]
        if route.template.contains("{app_id}") { errors.insert(.unknownApp) }
        if route.method == "POST" || route.method == "PUT" {
            errors.formUnion([.payloadTooLarge, .unsupportedMediaType])
        }
        switch route {
        case .addApp, .followAudit, .resendWebhook, .whatIf: errors.insert(.conflict)
        case .changeWebhook: errors.formUnion([.conflict, .preconditionFailed, .unknownApp])
        case .removeWebhook: errors.insert(.preconditionFailed)
        case .changeApp, .removeApp, .approveDevice, .rejectDevice, .revokeDevice, .forceRotation, .liftRotation,
            .lowerScheme:
            errors.formUnion([.conflict, .preconditionFailed])
        default: break
        }
        switch route {
        case .listApps: successSchema = "AppList"
        case .addApp: (requestSchema, successSchema, successStatus) = ("AppRecord", "AppRecord", 201)
        case .showApp: successSchema = "AppRecord"
        case .changeApp: (requestSchema, successSchema) = ("AppRecord", "AppRecord")
        case .removeApp, .revokeCredential, .revokeSigningKey, .removeWebhook: successStatus = 204
        case .listDevices: successSchema = "DevicePage"
        case .showDevice: successSchema = "Device"
        case .revokeDevice: (requestSchema, requestIsOptional, successSchema) = ("Revocation", true, "Device")
        case .approveDevice: (requestSchema, requestIsOptional, successSchema) = ("Approval", true, "Device")
        case .rejectDevice: (requestSchema, requestIsOptional, successSchema) = ("Nothing", true, "Device")
        case .forceRotation: (requestSchema, requestIsOptional, successSchema) = ("ForcedRotation", true, "Device")
        case .liftRotation: (requestSchema, requestIsOptional, successSchema) = ("Nothing", true, "Device")
        case .lowerScheme: (requestSchema, successSchema) = ("SchemeFloor", "Device")
        case .decideDevices: (requestSchema, successSchema) = ("Decisions", "DecisionResults")
        case .whatIf: (requestSchema, successSchema) = ("WhatIf", "WhatIfPage")
        case .listRecordings: successSchema = "RecordingPage"
        case .exportRecording: successSchema = "RecordingFile"
        case .eraseRecording, .eraseRecordings: successSchema = "RecordingsErased"
        case .queryAudit: successSchema = "AuditPage"
        case .followAudit: successSchema = "AuditTail"
        case .verifyAudit: successSchema = "AuditVerdict"
        case .showAuditHead: successSchema = "AuditHead"
        case .showStatistics: successSchema = "Statistics"
        case .showHistory: successSchema = "History"
        case .listCredentials: successSchema = "CredentialList"
        case .createCredential: (requestSchema, successSchema, successStatus) = ("CredentialRequest", "Credential", 201)
        case .listSigningKeys: successSchema = "SigningKeyList"
        case .rotateSigningKeys: (requestSchema, requestIsOptional, successSchema) = ("Nothing", true, "SigningKey")
        case .listWebhooks: successSchema = "WebhookList"
        case .addWebhook: (requestSchema, successSchema, successStatus) = ("WebhookRequest", "Webhook", 201)
        case .showWebhook: successSchema = "Webhook"
        case .changeWebhook: (requestSchema, successSchema) = ("WebhookSettings", "Webhook")
        case .resendWebhook: (requestSchema, successSchema) = ("Resending", "Webhook")
        case .listDeliveries: (successSchema, mostElements) = ("DeliveryList", Int64(WebhookDelivery.kept))
        }
    }
}
