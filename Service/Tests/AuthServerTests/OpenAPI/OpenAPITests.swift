import AuthContract
import AuthService
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// The OpenAPI document has every route and every error code, and no others.
@Suite struct OpenAPITests {
    private let document = OpenAPIDocument.json().object ?? JSONObject()

    private func operation(_ method: String, _ path: String) -> JSONObject? {
        document["paths"]?.object?[path]?.object?[method.lowercased()]?.object
    }

    @Test(arguments: Route.allCases) func `every route of the public API is documented`(route: Route) {
        #expect(operation(route.method, route.rawValue) != nil)
    }

    @Test(arguments: AdminRoute.allCases) func `every route of the admin API is documented`(route: AdminRoute) {
        #expect(operation(route.method, route.template) != nil)
    }

    @Test func `every error code is documented for some operation`() {
        let schema = document["components"]?.object?["schemas"]?.object?["ErrorCode"]?.object
        #expect(schema?["enum"]?.array?.compactMap(\.string) == ErrorCode.allCases.map(\.rawValue))
        let answered = OpenAPIDocument.operations.reduce(into: Set<ErrorCode>()) { $0.formUnion($1.errors) }
        // Every path can answer with these codes, so an operation need not name them.
        #expect(answered.union([.invalidRequest, .internalError, .methodNotAllowed]) == Set(ErrorCode.allCases))
    }

    @Test func `every reference has a target`() {
        var references: Set<String> = []
        func collect(_ value: JSONValue) {
            switch value {
            case .object(let object):
                if let reference = object["$ref"]?.string { references.insert(reference) }
                object.members.forEach { collect($0.value) }
            case .array(let values): values.forEach(collect)
            default: break
            }
        }
        collect(OpenAPIDocument.json())
        #expect(references.count > 30)
        for reference in references {
            var place: JSONValue? = OpenAPIDocument.json()
            for part in reference.split(separator: "/").dropFirst() { place = place?.object?[String(part)] }
            #expect(place != nil, "\(reference)")
        }
    }

    /// The headers of a documented response, by name.
    private func headers(_ method: String, _ path: String, _ status: Int) -> JSONObject? {
        operation(method, path)?["responses"]?.object?[String(status)]?.object?["headers"]?.object
    }

    /// Expects that the document names each of the service's own headers in a response, and that the response has each
    /// header that the document requires.
    private func expectDocumented(_ response: RawResponse, _ method: String, _ path: String) {
        let components = document["components"]?.object?["headers"]?.object
        let described = headers(method, path, response.status)?.members ?? []
        let names = Set(described.map { $0.name.lowercased() })
        for (name, _) in response.headers {
            let isOwn =
                name.lowercased().hasPrefix("x-synheart-")
                || ["etag", "retry-after", "www-authenticate"].contains(name.lowercased())
            #expect(!isOwn || names.contains(name.lowercased()), "\(method) \(path) \(response.status): \(name)")
        }
        for (name, reference) in described.map({ ($0.name, $0.value) }) {
            let component = reference.object?["$ref"]?.string?.split(separator: "/").last.map(String.init) ?? ""
            let isRequired = components?[component]?.object?["required"]?.bool
            #expect(
                isRequired == false || response.value(name) != nil, "\(method) \(path) \(response.status): no \(name)")
        }
    }

    @Test func `every documented path answers, with the headers that the document names`() async throws {
        try await TestServer.with(publicOrigin: "https://auth.example.com") { server in
            let admin = try await server.credential(.admin)
            for operation in OpenAPIDocument.operations {
                let port = Route(rawValue: operation.path) == nil ? server.operationsPort : server.publicPort
                let target = operation.path.replacing("{app_id}", with: "com.example.app")
                    .replacing("{device_id}", with: "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11")
                    .replacing("{credential_id}", with: "none").replacing("{recording_id}", with: "none")
                    .replacing("{webhook_id}", with: "none")
                let request = RawRequest(
                    method: operation.method, target: target, headers: [("Authorization", "Bearer \(admin)")])
                let response = try await RawConnection.exchange(port: port, request)
                let path = Comment(rawValue: "\(operation.method) \(operation.path): \(response.text)")
                #expect(response.status != 405, path)
                #expect(response.status != 404 || operation.path.contains("{"), path)
                let responses = self.operation(operation.method, operation.path)?["responses"]?.object
                #expect(responses?[String(response.status)] != nil, path)
                expectDocumented(response, operation.method, operation.path)
            }
        }
    }

    @Test func `only operations that a device signs demand a rotation`() {
        for operation in OpenAPIDocument.operations {
            for (status, response) in self.operation(operation.method, operation.path)?["responses"]?.object?.members
                .map({ ($0.name, $0.value) }) ?? []
            {
                let isDemanded = response.object?["headers"]?.object?[HeaderName.rotate] != nil
                let isRotated = operation.id == "rotateKey" && status == "200"
                #expect(
                    isDemanded == (operation.security == .deviceSignature && !isRotated), "\(operation.id) \(status)")
            }
        }
    }

    @Test func `forward authentication takes and answers the headers that the document names`() async throws {
        let parameters = operation("GET", Route.forward.rawValue)?["parameters"]?.array ?? []
        let names = Set(parameters.compactMap { $0.object?["name"]?.string?.lowercased() })
        #expect(
            names.isSuperset(of: [
                "x-original-method", "x-original-uri", "x-forwarded-method", "x-forwarded-uri", "x-forwarded-host",
                "x-forwarded-proto", "x-original-content-length", "x-original-transfer-encoding",
                "x-envoy-auth-partial-body", "signature-input", "signature", "content-digest",
            ]))
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let credential = (
                HeaderName.serviceCredential, try await server.credential(.service, apps: [TestServer.appID])
            )
            let lines = [
                credential, ("X-Original-Method", "GET"), ("X-Original-URI", "/x"),
                ("X-Original-Content-Length", "none"), ("X-Original-Transfer-Encoding", "none"),
            ]
            let signed = try device.headers("GET", "/x", at: server.clock.now)
            for (name, _) in signed + lines.dropFirst() { #expect(names.contains(name.lowercased()), "\(name)") }
            func expectAnswer(_ status: Int, _ headers: [(String, String)]) async throws {
                let response = try await server.send("GET", Route.forward.rawValue, headers)
                #expect(response.status == status, "\(response.text)")
                expectDocumented(response, "GET", Route.forward.rawValue)
            }
            try await expectAnswer(200, signed + lines)
            try await expectAnswer(403, signed + lines)
            try await expectAnswer(401, signed)
            await server.stores.fail(.claim)
            try await expectAnswer(503, try device.headers("GET", "/x", at: server.clock.now) + lines)
            var record = TestServer.record
            record["mode"] = "observe"
            #expect(try await server.service.apps.change(.init(.init(.object(record))), actor: "test"))
            try await expectAnswer(200, lines)
        }
    }

    @Test func `every operation has a description and an example of each body`() {
        for operation in OpenAPIDocument.operations {
            let json = self.operation(operation.method, operation.path)
            let description = json?["description"]?.string ?? ""
            #expect(description.hasSuffix(".") && description != operation.summary, "\(operation.id)")
            var contents = [json?["requestBody"]?.object?["content"]?.object?["application/json"]?.object]
            for (_, response) in json?["responses"]?.object?.members.map({ ($0.name, $0.value) }) ?? [] {
                contents += response.object?["content"]?.object?.members.map(\.value.object) ?? []
            }
            for content in contents.compactMap({ $0 })
            where content["schema"] != ["$ref": "#/components/schemas/Problem"] {
                #expect(content["example"] != nil, "\(operation.id)")
            }
            for parameter in json?["parameters"]?.array ?? [] where parameter.object?["in"] == "path" {
                #expect(parameter.object?["example"] != nil, "\(operation.id)")
            }
        }
    }

    @Test func `every example fits its schema`() {
        let schemas = document["components"]?.object?["schemas"]?.object ?? JSONObject()
        #expect(OpenAPIExamples.bySchema.members.count > 30)
        for (name, example) in OpenAPIExamples.bySchema.members.map({ ($0.name, $0.value) }) {
            guard let schema = schemas[name] else {
                Issue.record("an example of no schema: \(name)")
                continue
            }
            let failures = SchemaCheck(schemas: schemas).failures(of: example, in: schema, at: name)
            #expect(failures.isEmpty, "\(failures)")
        }
    }

    @Test(arguments: [nil, "https://auth.example.com"])
    func `the device API names the configured server, or none`(origin: String?) {
        let path = OpenAPIDocument.json(publicOrigin: origin).object?["paths"]?.object?[Route.verify.rawValue]?.object
        #expect(path?["servers"]?.array?.first?.object?["url"]?.string == origin ?? "/")
        #expect(!OpenAPIDocument.json(publicOrigin: origin).text().contains("127.0.0.1"))
    }

    @Test func `the document is served`() async throws {
        try await TestServer.with { server in
            let response = try await server.operations("/openapi.json")
            #expect(
                try JSONValue(parsing: response.body, limits: .init(bytes: 1 << 20, depth: 32))
                    == OpenAPIDocument.json())
        }
    }
}
