internal import AuthContract
internal import AuthService
package import StrictJSON

/// The OpenAPI 3.1 description of the service's APIs, built from the tables that also route them.
package enum OpenAPIDocument {
    /// All operations.
    static let operations: [OpenAPIOperation] =
        Route.allCases.map { OpenAPIOperation($0) } + AdminRoute.allCases.map { OpenAPIOperation($0) } + [
            OpenAPIOperation(
                id: "health", method: "GET", path: "/healthz", tag: "Operation", summary: "Whether the process lives",
                description: "200 as long as the process answers, whatever its stores do. Any Host is answered.",
                successSchema: "Health"),
            OpenAPIOperation(
                id: "readiness", method: "GET", path: "/readyz", tag: "Operation",
                summary: "Whether it can work; 503 with the same body where it cannot",
                description:
                    "Asks each store, the keys and the clock, writes a row, and looks for free space. 503 while the service stops. `degraded` names what refuses some requests for a while, with 200. `notes` has the ages of status lists. Any Host is answered.",
                successSchema: "ReadinessReport"),
            OpenAPIOperation(
                id: "metrics", method: "GET", path: "/metrics", tag: "Operation", summary: "Metrics for Prometheus",
                description: "The text exposition format. The checks of /readyz run too. Any Host is answered.",
                successMediaType: "text/plain"),
            OpenAPIOperation(
                id: "description", method: "GET", path: "/openapi.json", tag: "Operation", summary: "This document",
                description: "OpenAPI 3.1. The paths of the device API name the public listener as their server.",
                successSchema: "Document"),
        ]

    /// The document.
    ///
    /// - Parameter publicOrigin: where clients reach the device API, such as `https://auth.example.com`; nil: its paths have a
    ///   relative server, because the document cannot know where the public listener is reached.
    package static func json(publicOrigin: String? = nil) -> JSONValue { json(device: publicOrigin ?? "/") }

    private static func json(device server: String) -> JSONValue {
        [
            "openapi": "3.1.0",
            "info": [
                "title": "Synheart Auth", "version": "1",
                "description":
                    "The device API is answered by the public listener, administration and operation by the operations listener. Every error is one of the codes of `ErrorCode`.",
                "license": ["name": "Apache-2.0", "identifier": "Apache-2.0"],
            ],
            "servers": [["url": "/", "description": "The operations listener"]],
            "tags": [["name": "Device API"], ["name": "Administration"], ["name": "Operation"]],
            "paths": paths(server),
            "components": [
                "schemas": schemas, "headers": headers,
                "securitySchemes": [
                    "deviceSignature": [
                        "type": "apiKey", "in": "header", "name": .string(HeaderName.signature),
                        "description":
                            "A request signed by the device's key, under scheme 1 (the X-Synheart headers) or scheme 2 (RFC 9421).",
                    ],
                    "serviceCredential": ["type": "http", "scheme": "bearer"],
                    "forwardingCredential": [
                        "type": "apiKey", "in": "header", "name": .string(HeaderName.serviceCredential),
                        "description": "A service credential, in a header that a gateway adds.",
                    ],
                    "adminCredential": ["type": "http", "scheme": "bearer"],
                ],
            ],
        ]
    }

    private static func paths(_ server: String) -> JSONValue {
        var paths = JSONObject()
        for operation in operations {
            var item = paths[operation.path]?.object ?? JSONObject()
            if operation.tag == "Device API" {
                item["servers"] = [["url": .string(server), "description": "The public listener"]]
            }
            var json = operation.json
            // The 503 of a service that is not ready has the same body as the 200, not that of an error.
            if operation.id == "readiness", var object = json.object, var responses = object["responses"]?.object {
                responses["503"] = responses["200"]
                object["responses"] = .object(responses)
                json = .object(object)
            }
            item[operation.method.lowercased()] = json
            paths[operation.path] = .object(item)
        }
        return .object(paths)
    }

    private static var schemas: JSONValue {
        // If the text of schemas could not be parsed, the document would lack them, and its test would fail.
        var schemas =
            (try? JSONValue(parsing: OpenAPISchemas.text, limits: .init(bytes: 1 << 20, depth: 32)))?.object
            ?? JSONObject()
        schemas["AppRecord"] = JSONType.object(AppRecord.members).schema
        schemas["Compromise"] = AppRecord.objects.first { $0.path == ["keys", "compromise"] }.map {
            JSONType.object($0.members).schema
        }
        schemas["ErrorCode"] = words(ErrorCode.allCases.map(\.rawValue))
        schemas["AuditCode"] = words(AuditEvent.Code.allCases.map(\.rawValue))
        schemas["VerdictKind"] = words(CountedVerdict.Kind.allCases.map(\.rawValue))
        schemas["VerdictMember"] = words(CountedVerdict.Member.allCases.map(\.rawValue))
        schemas["Role"] = words(CredentialRole.allCases.map(\.rawValue))
        schemas["Document"] = ["type": "object"]
        return .object(schemas)
    }

    private static func words(_ words: [String]) -> JSONValue {
        ["type": "string", "enum": .array(words.map { .string($0) })]
    }

    private static var headers: JSONValue {
        let identity = VerifiedIdentity.headerNames.map { name in
            (name, header("string", "Of the verified identity; empty under observation.", isRequired: true))
        }
        let others = [
            (HeaderName.serverTime, header("integer", "The service's clock, unix seconds.", isRequired: true)),
            (HeaderName.requestID, header("string", "Names the request in the service's log.", isRequired: true)),
            (HeaderName.error, header("string", "The code of the refusal, as in the body.", isRequired: true)),
            ("ObservedError", header("string", "Under observation: the code that would have refused the request.")),
            (
                HeaderName.rotate,
                header("string", "`required; by=<unix>; reason=scheduled|compromise`: the device must rotate.")
            ),
            (
                HeaderName.assertion,
                header("string", "With `ASSERTION_REQUIRED`: `required; prefix=\"/v1/pay\"`, the paths that need one.")
            ),
            ("ETag", header("string", "The version of the record, for If-Match.", isRequired: true)),
            ("Retry-After", header("integer", "Seconds, at most 300.")),
            ("WWW-Authenticate", header("string", "`Bearer`, with `UNAUTHORIZED`.")),
        ]
        return .object(JSONObject(identity + others))
    }

    private static func header(_ type: String, _ description: String, isRequired: Bool = false) -> JSONValue {
        [
            "description": .string(description), "required": .bool(isRequired), "schema": ["type": .string(type)],
        ]
    }
}
