import AuthService
import StrictJSON
import Testing

@testable import AuthServer

/// The schema of an app record agrees with the record's member tables.
@Suite struct AppRecordSchemaTests {
    private static let schemas =
        OpenAPIDocument.json().object?["components"]?.object?["schemas"]?.object ?? JSONObject()

    /// The schema of one object of a record.
    private static func schema(_ path: [String]) throws -> JSONObject {
        // A demand in `keys.compromise` has its own schema.
        if path == ["keys", "compromise"] { return try #require(schemas["Compromise"]?.object) }
        let schema = path.reduce(schemas["AppRecord"]) { $0?.object?["properties"]?.object?[$1] }
        return try #require(schema?.object, "\(path)")
    }

    @Test func `the schema has the members of the tables, and refuses others as the record does`() throws {
        for (path, names) in AppRecord.memberNames {
            let schema = try Self.schema(path)
            #expect(schema["properties"]?.object?.members.map(\.name).sorted() == names.sorted(), "\(path)")
            #expect(schema["additionalProperties"] == false, "\(path)")
        }
    }

    @Test func `what the record takes is in the schema, and a number or a word outside of the schema is refused`()
        throws
    {
        for (path, names) in AppRecord.memberNames where !path.isEmpty {
            let properties = try #require(Self.schema(path)["properties"]?.object)
            for name in names {
                let property = try #require(properties[name]?.object)
                for probe in Self.probes(property) {
                    let record = Self.setting(Self.record, path + [name], probe)
                    let isTaken = (try? AppRecord(JSONFields(record))) != nil
                    let failures = SchemaCheck(schemas: Self.schemas).failures(
                        of: record, in: ["$ref": "#/components/schemas/AppRecord"], at: "record")
                    let place = "\((path + [name]).joined(separator: ".")) \(probe)"
                    #expect(!isTaken || failures.isEmpty, "\(place): \(failures)")
                    if Self.isExact(property) { #expect(isTaken == failures.isEmpty, "\(place)") }
                }
            }
        }
    }

    /// Whether the schema describes the property completely: numbers, enumerations and booleans. Texts and lists have rules
    /// that the schema does not express.
    private static func isExact(_ property: JSONObject) -> Bool {
        let types = property["type"]?.array?.compactMap(\.string) ?? []
        return property["enum"] != nil || types.contains("boolean") || types.contains("integer")
    }

    private static func probes(_ property: JSONObject) -> [JSONValue] {
        var probes: [JSONValue] = [.null, true, 0, 1, 2, -1, "", "x", [], ["x"], [1], [:], 1_000_000_000_000]
        for bound in [property["minimum"], property["maximum"]].compactMap({ $0?.integer }) {
            probes += [.integer(bound - 1), .integer(bound), .integer(bound + 1)]
        }
        let words = (property["enum"]?.array ?? []) + (property["items"]?.object?["enum"]?.array ?? [])
        return probes + words + words.map { [$0] }
    }

    /// A record in which each member can be changed independently.
    private static let record: JSONValue = [
        "app_id": "com.example.app", "build_channel": "staging",
        "ios": ["app_ids": ["TEAMID1234.com.example.app"]],
        "android": [
            "packages": ["com.example.app"], "certificate_digests": ["ERERERERERERERERERERERERERERERERERERERERERE"],
            "play_integrity": [:], "key_attestation": [:],
        ],
        "signature": ["token_audiences": ["https://api.example.com"]],
        "keys": ["compromise": ["keys_before": "2026-11-01T00:00:00Z", "rotate_by": "2026-11-08T00:00:00Z"]],
        "registration": [:], "evidence": [:],
    ]

    private static func setting(_ json: JSONValue, _ path: [String], _ value: JSONValue) -> JSONValue {
        guard let name = path.first, var object = json.object else { return value }
        object[name] = setting(object[name] ?? .null, Array(path.dropFirst()), value)
        return .object(object)
    }
}
