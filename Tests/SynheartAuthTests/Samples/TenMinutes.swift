import Foundation
import SynheartAuth

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// The samples of TenMinutes.md, in its order. DocumentationTests compares the page with this file.

enum TenMinutes {
    struct Archive: Sendable {
        let data: Data
        func makeStream() throws -> InputStream { InputStream(data: data) }
    }

    static func run(
        body: [UInt8], recording: URL, archive: Archive, file: FileHandle, request: inout URLRequest
    ) async throws {
        let service = "https://laptop.local:8443"
        let auth = SynheartAuth.shared
        try auth.configure(baseUrl: service)
        try await auth.registerDevice(appID: "com.example.app")
        let answer = try await auth.send(
            TransportRequest(method: "GET", url: service + "/auth/v1/device/status", headers: HeaderFields(), body: []),
            appID: "com.example.app")
        print(answer.status)  // 200: the service verified the signature.

        var configuration = try SynheartAuth.Configuration(baseUrl: "https://auth.example.com")
        configuration.origins = [try RequestOrigin("https://api.example.com")]
        configuration.scheme = .two
        try auth.configure(configuration)

        let reading = try await auth.send(
            TransportRequest(
                method: "POST", url: "https://api.example.com/v1/readings",
                headers: HeaderFields([("Content-Type", "application/json")]), body: body),
            appID: "com.example.app")

        let upload = try await auth.send(
            TransportRequest(
                method: "PUT", url: "https://api.example.com/v1/recordings/7", headers: HeaderFields(),
                bodyFile: recording.path, deadline: .seconds(600)),
            appID: "com.example.app")

        let backup = try await auth.send(
            TransportRequest(
                method: "PUT", url: "https://api.example.com/v1/backups/7", headers: HeaderFields(),
                bodySource: BodySource { try archive.makeStream() }, deadline: .seconds(600)),
            appID: "com.example.app")

        let export = try await auth.send(
            TransportRequest(
                method: "GET", url: "https://api.example.com/v1/export", headers: HeaderFields(), body: [],
                streamsAnswer: true),
            appID: "com.example.app")
        if let pieces = export.stream {
            for try await piece in pieces { try file.write(contentsOf: piece) }
        }

        try await auth.sign(&request, appID: "com.example.app")

        let signed = try await auth.signRequest(
            appID: "com.example.app", method: "POST", path: "/v1/readings", bodyBytes: body)
        for (name, value) in signed.fields { request.setValue(value, forHTTPHeaderField: name) }
        _ = (reading, upload, backup)
    }
}
